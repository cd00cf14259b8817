"""A process that hosts some slots, and the parent's handle on it."""

import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from forethought.environments.slots import Command, Factory, Replay, SlotHost
from forethought.errors import ForethoughtError

GRACE_S = 1.0
"""How long a process may take to leave, in seconds, before it is killed."""


@dataclass(frozen=True)
class Ready:
    """The worker has built all its instances."""

    actions: tuple[str, ...] | None


@dataclass(frozen=True)
class CannotStart:
    """The worker could not build an instance, and leaves."""

    error: ForethoughtError | None
    """Set where a person can fix it."""
    message: str


def serve(
    connection: "Connection[Any, Any]", factory: Factory, slots: tuple[int, ...], with_expert: bool
) -> None:
    """The worker's life: build the instances, execute commands in order, leave at the end.

    Commands are read by a thread, so that the parent never blocks on a full pipe, and
    so that a parent that vanishes is noticed even while an environment hangs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    orders: SimpleQueue[tuple[int, Command] | None] = SimpleQueue()
    threading.Thread(target=_read, args=(connection, orders), daemon=True).start()
    try:
        hosts = {slot: SlotHost(factory, with_expert) for slot in slots}
    except BaseException as error:
        known = error if isinstance(error, ForethoughtError) else None
        connection.send(CannotStart(known, traceback.format_exc()))
        return
    with suppress(OSError):  # the parent has gone
        connection.send(Ready(hosts[slots[0]].actions))
        while (order := orders.get()) is not None:
            slot, command = order
            connection.send(hosts[slot].execute(slot, command))
    for host in hosts.values():
        host.close()


def _read(
    connection: "Connection[Any, Any]", orders: "SimpleQueue[tuple[int, Command] | None]"
) -> None:
    with suppress(EOFError, OSError):
        while True:
            orders.put(connection.recv())
    orders.put(None)
    time.sleep(GRACE_S)  # a daemon thread: it ends with the process, if that ends in time
    os._exit(1)


@contextmanager
def undisturbed() -> Generator[None]:
    """Signals to end wait for the end of this block, in which a process is started.

    Ctrl-C reaches the whole group, and while the process starts, too, it is the parent's affair:
    what is blocked here stays so there. Blocking alone would not do. Another thread may take the
    signal, and Python then runs the handler here all the same: the process would be left without
    its instructions, and complain.
    """
    received: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {
        number: signal.signal(number, lambda number, _: received.append(number))
        for number in ((signal.SIGINT, signal.SIGTERM) if is_main else ())
    }
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in received[:1]:
            signal.raise_signal(number)


class Worker:
    """The parent's side of one process: started on creation, killed without a trace."""

    def __init__(
        self,
        factory: Factory,
        slots: tuple[int, ...],
        *,
        with_expert: bool,
        timeout_s: float,
        start_timeout_s: float,
    ) -> None:
        self.slots = slots
        self.is_ready = False
        self.queue: deque[int] = deque()
        """Slots whose commands it has not executed, oldest first: the order of execution."""
        self.timeout_s = timeout_s
        """What one reset or one action may take, seconds."""
        self._allowances_s: deque[float] = deque()
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, factory, slots, with_expert), daemon=True
        )
        # The tracker is started first: it unblocks Ctrl-C when it has been started.
        resource_tracker.ensure_running()
        with undisturbed():
            self._process.start()
        theirs.close()  # or the end of the process would not close the pipe
        self.deadline_s = time.monotonic() + start_timeout_s
        """On the monotonic clock: when its silence becomes a failure."""

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    @property
    def process_id(self) -> int | None:
        """The operating system's number of the process."""
        return self._process.pid

    def send(self, slot: int, command: Command) -> None:
        """Hands over a command. That a worker is dead shows when its result is read."""
        replayed = len(command.actions) if isinstance(command, Replay) else 0
        self._allowances_s.append(self.timeout_s * (1 + replayed))
        self.queue.append(slot)
        if self.is_ready and len(self.queue) == 1:
            self._start_clock()
        with suppress(OSError):
            self.connection.send((slot, command))

    def note_ready(self) -> None:
        """Takes note that the instances are built, and starts the clock."""
        self.is_ready = True
        self._start_clock()

    def note_result(self, slot: int) -> None:
        """Takes note that the oldest command was executed.

        Raises:
            RuntimeError: it was another slot's.
        """
        if self.queue.popleft() != slot:
            raise RuntimeError(f"a worker replied for slot {slot} out of turn")
        self._allowances_s.popleft()
        self._start_clock()

    def kill(self) -> int | None:
        """Ends the process at once; its exit code says whether it had ended before."""
        self._process.join(0.1)  # a crashed process is given the time to say how it ended
        self._process.kill()
        self._process.join()
        self.connection.close()
        return self._process.exitcode

    def leave(self, patience_s: float) -> None:
        """Waits for the process, whose connection is closed, to end; then kills it."""
        self._process.join(patience_s)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _start_clock(self) -> None:
        if self._allowances_s:
            self.deadline_s = time.monotonic() + self._allowances_s[0]


def dismiss(workers: Iterable[Worker]) -> None:
    """Lets workers leave, all at the same time, and kills those that do not."""
    for worker in workers:
        worker.connection.close()
    give_up_s = time.monotonic() + GRACE_S
    for worker in workers:
        worker.leave(max(0.0, give_up_s - time.monotonic()))
