"""A prompt that says how well the episode is to go on, for policies that imitate on demand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from forethought.environments.wording import Prompter
from forethought.prompts.strict_format import response_fields
from forethought.types import Message, Observation

_LEAD = "Wanted return: level "


@dataclass(frozen=True)
class WantedPrompter:
    """A world's prompter, with the wanted level below every message of the world's."""

    inner: Prompter
    level: int
    """1 is the lowest."""
    levels: int

    @property
    def response_fields(self) -> tuple[str, ...]:
        return response_fields(self.inner)

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        messages = self.inner.messages(observation)
        return tell_levels(messages, (self.level,) * len(messages), self.levels)


def tell_levels(
    messages: Sequence[Message], wanted: Sequence[int], levels: int
) -> tuple[Message, ...]:
    """The messages, asking for these levels instead of any others.

    A conversation keeps what it asked for before, as a Decision Transformer's context does: so
    each prompt begins with the one before it, and an episode stays one sequence.

    Args:
        wanted: of the steps so far, the present one last. The last messages of the user's have
            one each, as far as there are levels.
    """
    left = list(wanted)
    told: list[Message] = []
    for message in reversed(messages):
        if message.role == "user" and left:
            lines = [line for line in message.text.split("\n") if not line.startswith(_LEAD)]
            asked = f"{_LEAD}{left.pop()} of {levels}"
            message = replace(message, text="\n".join([*lines, asked]))
        told.append(message)
    return tuple(reversed(told))
