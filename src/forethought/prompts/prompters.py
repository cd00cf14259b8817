"""Prompters of environments without wording of their own, and the choice of the right one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from forethought.configs.parts import ResponseFormat, require
from forethought.environments.contract import (
    Environment,
    ExpertAction,
    Prompter,
    Summarize,
    WithSummary,
    WithTranscript,
    WithWording,
    Wording,
)
from forethought.environments.parts import Turn, read_transcript
from forethought.prompts.responses import response_fields, write_response
from forethought.types import Message, Observation


@dataclass(frozen=True)
class PlainPrompter:
    """Goal, state, admissible actions and the form of the response, as one message of the user."""

    actions: tuple[str, ...] | None
    response_format: ResponseFormat

    @property
    def response_fields(self) -> tuple[str, ...]:
        """The JSON fields that the prompt asks for, in order."""
        return ("thoughts", "action") if self.response_format == "thoughts" else ("action",)

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """One message with the image, if there is one."""
        lines = [observation.goal]
        if observation.text is not None:
            lines.append(observation.text)
        open_now = observation.admissible_actions or self.actions
        if open_now is not None:
            lines.append("Actions: " + ", ".join(open_now))
        form = '{"thoughts", "action"}' if self.response_format == "thoughts" else '{"action"}'
        lines.append("Answer as JSON: " + form)
        return (Message("user", "\n".join(lines), observation.image),)


@dataclass(frozen=True)
class TranscriptPrompter:
    """Goal and form of the response; then the agent's past responses and the observations.

    Past responses hold the action alone. Where the agent responds so, too (`action_only`), each
    prompt begins with the one before it and the response to that, token by token: a whole
    episode is one sequence. That holds for responses in the form of `write_response`, and for
    chat templates that close a response with the end-of-sequence token and change no text.
    """

    response_format: ResponseFormat

    @property
    def response_fields(self) -> tuple[str, ...]:
        """The JSON fields that the prompt asks for, in order."""
        return ("thoughts", "action") if self.response_format == "thoughts" else ("action",)

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """The goal first; then a message of the agent's and one of the user's per turn.

        Raises:
            ValueError: the observation's text is no transcript.
        """
        form = '{"thoughts", "action"}' if self.response_format == "thoughts" else '{"action"}'
        messages = [Message("user", f"{observation.goal}\nAnswer as JSON: {form}")]
        for turn in read_transcript(observation.text or ""):
            messages += _exchange(turn)
        return tuple(messages)


@lru_cache(maxsize=1 << 16)
def _exchange(turn: Turn) -> tuple[Message, Message]:
    response = write_response(ExpertAction(turn.action, ()), "action_only")
    return Message("assistant", response), Message("user", turn.reply)


_LEAD = "Wanted return: level "
"""Begins the line of the prompt that names a return bin."""


@dataclass(frozen=True)
class ReturnBinPrompter:
    """Another prompter's messages, with the return bin to aim for below each of the user's."""

    inner: Prompter
    level: int
    """The bin; 1 is the lowest."""
    levels: int
    """Number of bins."""

    @property
    def response_fields(self) -> tuple[str, ...]:
        """The JSON fields that the inner prompter asks for."""
        return response_fields(self.inner)

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """The inner prompter's messages, all of them with the one bin."""
        messages = self.inner.messages(observation)
        return ask_for_return_bins(messages, (self.level,) * len(messages), self.levels)


def ask_for_return_bins(
    messages: Sequence[Message], bins: Sequence[int], levels: int
) -> tuple[Message, ...]:
    """The messages, with these return bins in place of any that they ask for.

    A conversation keeps what it asked for before, as a Decision Transformer's context does: so
    each prompt begins with the one before it, and an episode stays one sequence.

    Args:
        bins: those of the steps so far, the present one last. The last messages of the user's
            get one each, as far as there are bins.
        levels: the number of bins.
    """
    left = list(bins)
    changed: list[Message] = []
    for message in reversed(messages):
        if message.role == "user" and left:
            lines = [line for line in message.text.split("\n") if not line.startswith(_LEAD)]
            asked = f"{_LEAD}{left.pop()} of {levels}"
            message = replace(message, text="\n".join([*lines, asked]))
        changed.append(message)
    return tuple(reversed(changed))


def make_prompter(
    environment: Environment,
    *,
    response_format: ResponseFormat = "thoughts",
    wording: Wording = "short",
) -> Prompter:
    """The environment's own wording, or the plain one.

    Args:
        response_format: with thoughts before the action, or the action alone.
        wording: "paper" is the published prompt, where the environment has one.
    """
    if isinstance(environment, WithWording):
        return environment.prompter(response_format, wording)
    if isinstance(environment, WithTranscript):
        return TranscriptPrompter(response_format)
    return PlainPrompter(environment.actions, response_format)


def find_summary(name: str, environment: Environment) -> Summarize:
    """The summary that an environment makes of an episode.

    Raises:
        ConfigError: it makes none, or none with its options.
    """
    has_one = isinstance(environment, WithSummary)
    expected = f"none or window for {name}, which sums up no episode"
    require(has_one, "prompt.history", "summary", expected)
    summarize = environment.summarize if isinstance(environment, WithSummary) else None
    # Without a text, its summary would say that nothing is held.
    expected = "none or window where only images are shown, which leave no text to sum up"
    require(summarize is not None, "prompt.history", "summary", expected)
    assert summarize is not None
    return summarize
