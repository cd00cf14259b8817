"""Many environments at once, without ever waiting for the slowest.

A runner hosts `slots` instances. Commands go out slot by slot, results come back as
they are ready, so a caller keeps every instance busy however uneven their steps are.
A crashed or hung environment is a result too (`Failed`), never a reward of zero.
"""

import pickle
import time
import weakref
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Protocol, Self, cast

from forethought.environments.guard import TIMEOUT_S, Guard, SilenceError
from forethought.environments.slots import (
    Act,
    Command,
    Factory,
    Failed,
    Ledger,
    Observed,
    Replay,
    Reset,
    Result,
    SlotHost,
)
from forethought.environments.worker import CannotStart, Ready, Worker, dismiss
from forethought.types import EnvironmentFailure

__all__ = [
    "Act",
    "Command",
    "Factory",
    "Failed",
    "InProcessRunner",
    "Observed",
    "Replay",
    "Reset",
    "Result",
    "Runner",
    "SubprocessRunner",
]


class Runner(Protocol):
    """Hosts environments and executes commands on them, one at a time per slot."""

    @property
    def slots(self) -> int:
        """The number of instances."""
        ...

    @property
    def actions(self) -> tuple[str, ...] | None:
        """Every action of the environment, or None where actions are open text."""
        ...

    def send(self, slot: int, command: Command) -> None:
        """Asks a slot to do something; returns at once.

        Raises:
            RuntimeError: the slot's last command has no result yet, or it is asked
                to act without an episode that goes on.
        """
        ...

    def receive(self) -> list[Result]:
        """All results that are ready, at least one, in the order of slots; blocks until then.

        Raises:
            RuntimeError: no command is outstanding.
        """
        ...

    def close(self) -> None:
        """Ends all instances; closing twice does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class InProcessRunner:
    """Executes every command in this process, at once: for fast environments, and to debug.

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
        """Builds all instances. Arguments as in `SubprocessRunner`."""
        self._ledger = Ledger(slots)
        self._hosts = [SlotHost(factory, with_expert) for _ in range(slots)]
        self._guard = Guard(timeout_s)
        self._guard.open()
        weakref.finalize(self, self._guard.close)

    @property
    def slots(self) -> int:
        """The number of instances."""
        return len(self._ledger)

    @property
    def actions(self) -> tuple[str, ...] | None:
        """Every action of the environment, or None where actions are open text."""
        return self._hosts[0].actions

    def send(self, slot: int, command: Command) -> None:
        """Executes the command at once, in this process."""
        order, host = self._ledger.accept(slot, command), self._hosts[slot]
        actions = len(order.actions) if isinstance(order, Replay) else 0
        try:
            with self._guard.command(actions=actions, builds=not host.is_built):
                result = host.execute(slot, order)
        except SilenceError as silence:  # Also while it was being closed.
            result = host.lose(slot, silence)
        self._ledger.settle(result)

    def receive(self) -> list[Result]:
        """What the commands since the last call led to, in the order of slots."""
        self._ledger.require_business()
        return self._ledger.collect()

    def close(self) -> None:
        """Closes all instances."""
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


class SubprocessRunner:
    """Spreads the slots over worker processes, and survives the loss of any of them.

    A worker executes its commands in order. If it dies, or is silent for longer than
    the command may take, it is killed and replaced; the command that it was executing
    ends in `Failed`. Its other slots are restored from their seeds and actions,
    unseen by the caller: at once where a command was waiting, else with their next
    action. Nothing remains when the runner is closed, the interpreter exits, or
    the parent is killed.
    """

    def __init__(
        self,
        factory: Factory,
        slots: int,
        *,
        workers: int,
        timeout_s: float = 60.0,
        start_timeout_s: float = 300.0,
        with_expert: bool = False,
    ) -> None:
        """Starts all workers and waits until they are ready.

        Args:
            factory: picklable; it is called in the workers.
            timeout_s: what one reset or one action may take, seconds; a replay may
                take as much for each of its actions.
            start_timeout_s: what starting a worker and building its instances may take.
            with_expert: every result also holds the expert's action.

        Raises:
            TypeError: the factory cannot be pickled.
            ForethoughtError: what the factory raised in the worker.
            RuntimeError: a worker could not start for another reason.
        """
        if workers < 1:
            raise ValueError(f"a runner needs at least one worker, got {workers}")
        _require_picklable(factory)
        self._ledger = Ledger(slots)
        self._actions: tuple[str, ...] | None = None
        self._start = partial(
            Worker,
            factory,
            with_expert=with_expert,
            timeout_s=timeout_s,
            start_timeout_s=start_timeout_s,
        )
        self._workers: list[Worker] = []
        self._finalizer = weakref.finalize(self, dismiss, self._workers)
        self._is_starting = True
        try:
            count = min(workers, slots)
            for first in range(count):
                self._workers.append(self._start(tuple(range(first, slots, count))))
            while not all(worker.is_ready for worker in self._workers):
                self._listen(may_wait=True)
        except BaseException:
            self.close()
            raise
        self._is_starting = False

    @property
    def slots(self) -> int:
        """The number of instances."""
        return len(self._ledger)

    @property
    def actions(self) -> tuple[str, ...] | None:
        """Every action of the environment, or None where actions are open text."""
        return self._actions

    @property
    def process_ids(self) -> tuple[int | None, ...]:
        """Numbers of the workers' processes, for those who watch them."""
        return tuple(worker.process_id for worker in self._workers)

    def send(self, slot: int, command: Command) -> None:
        """Hands the command to the slot's worker, replacing one that died meanwhile.

        Raises:
            RuntimeError: the runner is closed, or the slot is busy.
        """
        if not self._finalizer.alive:
            raise RuntimeError("the runner is closed")
        number = slot % len(self._workers)
        if not self._workers[number].is_alive and not self._workers[number].queue:
            self._replace(number)  # it ended while nothing was asked of it
        self._workers[number].send(slot, self._ledger.accept(slot, command))

    def receive(self) -> list[Result]:
        """What is ready, in the order of slots; waits until there is something."""
        self._ledger.require_business()
        self._listen(may_wait=False)
        while not self._ledger.has_results:
            self._listen(may_wait=True)
        return self._ledger.collect()

    def close(self) -> None:
        """Ends all workers; closing twice does nothing."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _listen(self, *, may_wait: bool) -> None:
        """Reads what the workers have said, and deals with those that died or hang."""
        awaited = {
            worker.connection: number
            for number, worker in enumerate(self._workers)
            if self._is_awaited(worker)
        }
        if not awaited:
            return
        soonest_s = min(self._workers[number].deadline_s for number in awaited.values())
        patience_s = max(0.0, soonest_s - time.monotonic()) if may_wait else 0.0
        for connection in wait(list(awaited), patience_s):
            self._read(awaited[cast("Connection[Any, Any]", connection)])
        for number in awaited.values():
            worker = self._workers[number]
            if self._is_awaited(worker) and worker.deadline_s < time.monotonic():
                reason = f"no answer within {worker.timeout_s:g} s per action"
                self._lose(number, EnvironmentFailure.TIMEOUT, reason)

    def _is_awaited(self, worker: Worker) -> bool:
        return bool(worker.queue) or (self._is_starting and not worker.is_ready)

    def _read(self, number: int) -> None:
        worker = self._workers[number]
        try:
            while worker.connection.poll():
                match worker.connection.recv():
                    case Ready(actions):
                        worker.note_ready()
                        self._actions = actions
                    case CannotStart(error, message) if self._is_starting:
                        raise error or RuntimeError(f"an environment cannot be built:\n{message}")
                    case CannotStart(_, message):
                        reason = message.strip().splitlines()[-1]
                        return self._lose(number, EnvironmentFailure.CRASH, reason)
                    case Observed() | Failed() as result:
                        worker.note_result(result.slot)
                        self._ledger.settle(result)
                    case other:
                        raise RuntimeError(f"a worker said {other!r}")
        except (EOFError, OSError):
            self._lose(number, EnvironmentFailure.CRASH, "the worker process ended")

    def _lose(self, number: int, failure: EnvironmentFailure, reason: str) -> None:
        """Gives up a worker: answers for the command that it was executing, and has the
        others executed by a fresh one. A worker that could not even start fails them all,
        and is replaced when next needed."""
        lost = self._workers[number]
        exit_code = lost.kill()
        if self._is_starting:
            raise RuntimeError(f"a worker could not start (exit code {exit_code}): {reason}")
        if failure is EnvironmentFailure.CRASH:
            reason += f" (exit code {exit_code})"
        waiting = list(lost.queue)
        lost.queue.clear()
        failed = waiting[:1] if lost.is_ready else waiting
        for slot in failed:
            self._ledger.settle(Failed(slot, failure, reason))
        self._ledger.mark_stale(lost.slots)
        if lost.is_ready:
            fresh = self._replace(number)
            for slot in waiting[1:]:
                fresh.send(slot, self._ledger.order(slot))

    def _replace(self, number: int) -> Worker:
        lost = self._workers[number]
        lost.kill()
        self._ledger.mark_stale(lost.slots)
        self._workers[number] = self._start(lost.slots)
        return self._workers[number]


def _require_picklable(factory: Factory) -> None:
    try:
        pickle.dumps(factory)
    except Exception as error:
        raise TypeError(
            "worker processes need a factory that can be pickled, such as functools.partial("
            f'make_environment, "NumberLine"), got {factory!r}: {error}'
        ) from error
