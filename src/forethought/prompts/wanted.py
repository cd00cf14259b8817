"""A prompt that says how well the episode is to go on, for policies that imitate on demand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from forethought.prompts.contract import Prompter
from forethought.types import Message, Observation

_LEAD = "Wanted return: level "


@dataclass(frozen=True)
class WantedPrompter:
    """A world's prompter, with the wanted level below its last message."""

    inner: Prompter
    level: int
    """1 is the lowest."""
    levels: int

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        return tell_level(self.inner.messages(observation), self.level, self.levels)


def tell_level(messages: Sequence[Message], level: int, levels: int) -> tuple[Message, ...]:
    """The messages, asking for this level instead of any other."""
    *earlier, last = messages
    lines = [line for line in last.text.split("\n") if not line.startswith(_LEAD)]
    return (*earlier, replace(last, text="\n".join([*lines, f"{_LEAD}{level} of {levels}"])))
