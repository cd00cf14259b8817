"""What can go wrong, as sentences that help.

Every error that a person can cause derives from `ForethoughtError`; the command
line prints its message on one line and exits with `exit_code`. A bug of ours is
any other exception, and keeps its traceback.
"""

import re


class ForethoughtError(Exception):
    """An error that a person can fix: what was got, what was expected, what to do."""

    exit_code = 2


class ConfigError(ForethoughtError):
    """A setting has a value it may not have."""


class MissingDependencyError(ForethoughtError):
    """An optional package is needed; the message holds the command that installs it."""


class UnknownNameError(ForethoughtError):
    """A name of an environment, policy or file that does not exist."""


class CheckpointError(ForethoughtError):
    """A checkpoint is incomplete, altered, or of another version."""


class RunFolderError(ForethoughtError):
    """A run folder cannot be used: locked, read-only, or not a run folder."""


class StorageError(ForethoughtError):
    """Writing or reading data failed: disk full, file cut short, other schema."""


class PolicyError(ForethoughtError):
    """A model cannot be loaded or cannot do what was asked of it."""


class PromptTooLongError(PolicyError):
    """A prompt, or a text to learn from, has more tokens than the model has positions."""


class EnvironmentUnusableError(ForethoughtError):
    """An environment crashes or hangs again and again."""


class OffPolicyError(ForethoughtError):
    """Recomputed log-probs differ from the sampled ones: the data are not this policy's."""


class DivergenceError(ForethoughtError):
    """Training left the numbers: the weights would become infinite or not a number."""


_OBEYED = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters (C0, DEL, C1), which terminals obey
    "\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # unseen; turn what follows
    "\ud800-\udfff"  # half surrogate pairs, which cannot be written
    "]"
)
"""As in the page of a report (report.js). Joiners stay: scripts and emoji are spelt with them."""


def visible(text: str) -> str:
    """The text with such characters as Python writes them: "\\x1b[31m", "\\u202e".

    Line ends and tabs stay.
    """
    return _OBEYED.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
