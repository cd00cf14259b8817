"""What an environment may say of its own prompts: wording, history and layout."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from forethought.configs.parts import AnswerFormat
from forethought.types import Message, Observation

Wording = Literal["short", "paper"]
"""The published prompt, or one of a quarter of its length."""


class Prompter(Protocol):
    """Turns an observation into the messages that are put to the model."""

    def messages(self, observation: Observation) -> tuple[Message, ...]: ...


@runtime_checkable
class WithResponseFields(Protocol):
    """What a prompter offers besides, if it asks for a response in JSON."""

    @property
    def response_fields(self) -> tuple[str, ...]:
        """Names of the fields that it asks for, in order, `action` last; empty where what it
        wraps asks for no JSON."""
        ...


class Past(NamedTuple):
    """A step of the episode that lies behind the agent."""

    observation: Observation
    """What it saw, less the picture."""
    action: str
    """What was done; after an answer without a valid action, what it tried (possibly nothing)."""
    is_valid: bool
    """Whether that was an action; if not, nothing happened."""


Summarize = Callable[[Sequence[Past], Observation], Observation]
"""The present observation with a text that holds all that is worth remembering of the steps so
far, oldest first: a pure function of what the agent was shown and did, so that it survives a kill
and tells nothing that is hidden."""


@runtime_checkable
class WithWording(Protocol):
    """What an environment offers besides, if it words its own prompts."""

    def prompter(self, answer_format: AnswerFormat, wording: Wording) -> Prompter:
        """
        Args:
            answer_format: with thoughts before the action, or the action alone.
            wording: "paper" is the published prompt, where there is one.
        """
        ...


@runtime_checkable
class WithSummary(Protocol):
    """What an environment offers besides, if it can sum up an episode (`prompt.history`)."""

    @property
    def summarize(self) -> Summarize | None:
        """None: what the options show leaves nothing to sum up."""
        ...


@runtime_checkable
class WithTranscript(Protocol):
    """What an environment offers besides, if its observation's text is the episode so far, as
    `write_transcript` has it: prompts tell it as the conversation that it was."""

    is_transcript: bool
