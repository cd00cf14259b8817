"""Ctrl-C and SIGTERM as an exception that says how to go on."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

IMPATIENCE_S = 1.0
"""A second signal after this time ends the process at once: cleaning up hangs, it seems.
Before, it is the echo of the first (launchers pass on what the terminal sends to all)."""

_ONCE_MORE_S = 0.05


class Interrupt(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.way_on: str | None = None
        """How the work is taken up again, if it can be: the rest of a sentence."""

    @property
    def exit_code(self) -> int:
        """As shells count them: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number


class Interruptions:
    """What has been received. Libraries may turn an exception into another, never this."""

    def __init__(self) -> None:
        self.received: Interrupt | None = None
        self._received_at = 0.0

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Raises an `Interrupt` for the first signal."""
        if self.received is None:
            self.received = Interrupt(number)
            self._received_at = time.monotonic()
            raise self.received
        if time.monotonic() - self._received_at > IMPATIENCE_S:
            os.write(2, b"interrupted again: left at once\n")
            os._exit(self.received.exit_code)

    def on_unraisable(self, args: "UnraisableHookArgs") -> None:
        """Where an `Interrupt` comes up in a finaliser, Python would only print it: it is
        sent once more, to come up elsewhere."""
        if not isinstance(args.exc_value, Interrupt):
            sys.__unraisablehook__(args)
            return
        self.received = None
        threading.Timer(_ONCE_MORE_S, os.kill, (os.getpid(), args.exc_value.number)).start()


@contextmanager
def interruptible() -> Generator[Interruptions]:
    """Within this block SIGINT and SIGTERM raise an `Interrupt`."""
    interruptions = Interruptions()
    if threading.current_thread() is not threading.main_thread():
        yield interruptions  # Signals are the main thread's affair.
        return
    handlers = {
        number: signal.signal(number, interruptions.on_signal)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    hook, sys.unraisablehook = sys.unraisablehook, interruptions.on_unraisable
    try:
        yield interruptions
    finally:
        sys.unraisablehook = hook
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def continued_by(way_on: Callable[[], str | None]) -> Generator[None]:
    """An interruption of this block is reported with this way on."""
    try:
        yield
    except Interrupt as interrupt:
        interrupt.way_on = interrupt.way_on or way_on()
        raise
