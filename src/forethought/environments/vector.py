"""Many environments at once, without ever waiting for the slowest.

A runner hosts `slots` instances. Commands go out slot by slot, answers come back as
they are ready, so a caller keeps every instance busy however uneven their steps are.
A crashed or hung environment is an answer too (`Failed`), never a reward of zero.
"""

import weakref
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self

from forethought.environments.guard import TIMEOUT_S, Guard, SilenceError
from forethought.environments.slots import (
    Act,
    Answer,
    Command,
    Factory,
    Failed,
    Ledger,
    Replay,
    Reply,
    Reset,
    SlotHost,
)
from forethought.environments.subprocess_runner import SubprocessRunner

__all__ = [
    "Act",
    "Answer",
    "Command",
    "Factory",
    "Failed",
    "InProcessRunner",
    "Replay",
    "Reply",
    "Reset",
    "Runner",
    "SubprocessRunner",
]


class Runner(Protocol):
    """Hosts environments and executes commands on them, one at a time per slot."""

    @property
    def slots(self) -> int: ...

    @property
    def actions(self) -> tuple[str, ...] | None:
        """Every action of the world, or None where actions are open text."""
        ...

    def send(self, slot: int, command: Command) -> None:
        """Asks a slot to do something; returns at once.

        Raises:
            RuntimeError: the slot has not answered its last command, or it is asked
                to act without an episode that goes on.
        """
        ...

    def receive(self) -> list[Answer]:
        """All answers that are ready, at least one, in the order of slots; blocks until then.

        Raises:
            RuntimeError: no command is outstanding.
        """
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class InProcessRunner:
    """Executes every command in this process, at once: for fast worlds, and to debug.

    While it is open it holds SIGALRM, by which a silent environment is interrupted, if it was
    made in the main thread and nobody else uses that signal. See `guard.py`.
    """

    def __init__(
        self,
        factory: Factory,
        slots: int,
        *,
        timeout_s: float = TIMEOUT_S,
        with_expert: bool = False,
    ) -> None:
        """Builds all instances.

        Args:
            timeout_s: what one reset or one action may take, seconds; a replay may take as
                much for each of its actions.
            with_expert: every reply also holds the expert's action.
        """
        self._ledger = Ledger(slots)
        self._hosts = [SlotHost(factory, with_expert) for _ in range(slots)]
        self._guard = Guard(timeout_s)
        self._guard.open()
        weakref.finalize(self, self._guard.close)

    @property
    def slots(self) -> int:
        return len(self._ledger)

    @property
    def actions(self) -> tuple[str, ...] | None:
        return self._hosts[0].actions

    def send(self, slot: int, command: Command) -> None:
        order, host = self._ledger.accept(slot, command), self._hosts[slot]
        actions = len(order.actions) if isinstance(order, Replay) else 0
        try:
            with self._guard.command(actions=actions, builds=not host.is_built):
                answer = host.execute(slot, order)
        except SilenceError as silence:  # Also while it was being closed.
            answer = host.lose(slot, silence)
        self._ledger.settle(answer)

    def receive(self) -> list[Answer]:
        self._ledger.require_business()
        return self._ledger.collect()

    def close(self) -> None:
        for host in self._hosts:
            with suppress(SilenceError), self._guard.command():
                host.close()
        self._guard.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
