"""What the agent is told: the seam between a world's observation and a model's messages."""

from typing import Protocol

from forethought.types import Message, Observation


class Prompter(Protocol):
    """Turns an observation into the messages that are put to the model."""

    def messages(self, observation: Observation) -> tuple[Message, ...]: ...
