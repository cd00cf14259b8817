"""What the agent is told: the seam between a world's observation and a model's messages."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from forethought.types import Message, Observation


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


class Memory(Protocol):
    """A world's own summary of an episode.

    A pure function of what the agent was shown and did, so that it survives a kill and tells
    nothing that is hidden.
    """

    def __call__(self, past: Sequence[Past], observation: Observation) -> Observation:
        """The present observation with a text that holds all that is worth remembering."""
        ...
