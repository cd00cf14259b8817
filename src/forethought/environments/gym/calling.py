"""Calls of somebody else's code: what it raises becomes one line that a person can act on."""

from collections.abc import Generator
from contextlib import contextmanager, suppress

from gymnasium.error import DependencyNotInstalled

from forethought.configs.parts import shown
from forethought.errors import EnvironmentUnusableError, ForethoughtError, MissingDependencyError

MOST_CHARACTERS = 300
"""Of an exception's message; some hold a whole observation."""
EXTRAS = {"minigrid": 'pip install "forethought[minigrid]"'}
"""What to install for modules that we know."""


class CallTimeoutError(EnvironmentUnusableError, TimeoutError):
    """The environment's own program was silent: the episode is lost to a timeout, not a crash."""


@contextmanager
def calling(
    id: str, call: str, expected: str, kind: type[ForethoughtError] = EnvironmentUnusableError
) -> Generator[None]:
    """Runs an environment's code in this block.

    Args:
        id: of the environment, as the user wrote it.
        call: what is called: "reset(seed=0)".
        expected: what the call should have led to, and what to do.
        kind: of error.

    Raises:
        MissingDependencyError: a package is not installed; the message says which.
        ForethoughtError: it raised anything else. The cause is chained.
    """
    try:
        yield
    except ForethoughtError:
        raise
    except DependencyNotInstalled as error:
        raise MissingDependencyError(f"{id}: {call}: {message(error)}") from error
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None:
            command = EXTRAS.get(missing.partition(".")[0], f"pip install {missing}")
            raise MissingDependencyError(
                f"{id} needs {missing}, not installed — run: {command}"
            ) from error
        if isinstance(error, TimeoutError) and kind is EnvironmentUnusableError:
            kind = CallTimeoutError
        said = f"{type(error).__name__}: {message(error)}".removesuffix(": ")
        raise kind(f"{id}: {call} raised {said} — {expected}") from error


def message(error: BaseException) -> str:
    """What an exception says, in one line of moderate length; "" where it says nothing."""
    text = ""
    with suppress(Exception):  # Its text is code of the environment, too.
        text = " ".join(str(error).split())
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def brief(value: object) -> str:
    """A value for a message, in one line."""
    return " ".join(shown(value).split())
