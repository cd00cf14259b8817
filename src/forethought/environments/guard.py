"""An environment's own code, run so that neither its silence nor its exit ends the run.

In worker processes the parent kills what is silent. In this process it can only be
interrupted: a timer raises `SilenceError` inside the environment. Code that cannot be
interrupted (a library that waits in C), or that runs outside the main thread, is noticed by
a thread, which says so in one line and ends the process: a checkpoint survives that.
"""

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from forethought.errors import EnvironmentUnusableError, ForethoughtError

TIMEOUT_S = 60.0
"""What one reset or one action may take, seconds."""

START_TIMEOUT_S = 300.0
"""What building an instance may take, seconds."""

_AGAIN_S = 1.0
"""An environment that swallows the interruption is interrupted again after this time."""

_TICKS = 20
"""The thread looks so often within the time that a command may take."""

_SIGNALS_TO_END = (signal.SIGINT, signal.SIGTERM)


class SilenceError(BaseException):
    """Raised inside an environment that has not answered in time. Not an `Exception`, so that
    few environments catch it."""


class Guard:
    """Runs commands of environments in this process, one at a time.

    While it is open, it knows whether `KeyboardInterrupt` and `SystemExit` come from a signal,
    thus from a person, who ends the run; or from the environment, whose episode has crashed.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        """
        Args:
            timeout_s: what one reset or one action may take.
        """
        self.timeout_s = timeout_s
        self.interrupt: BaseException | None = None
        """What a signal handler raised during the present or last command."""
        self._allowance_s: float | None = None
        """Time of the command that is running."""
        self._commands = 0
        self._handlers: dict[int, Any] = {}
        """What was in the place of ours."""
        self._has_timer = False
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def open(self) -> None:
        """Takes over the signals, where this is the main thread, and starts watching."""
        self._thread.start()
        if threading.current_thread() is not threading.main_thread():
            return
        alarm = signal.getsignal(signal.SIGALRM)
        is_free = alarm in (signal.SIG_DFL, signal.SIG_IGN)
        if is_free or isinstance(getattr(alarm, "__self__", None), Guard):
            self._has_timer = True  # Otherwise somebody else counts time by it.
            self._handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._on_alarm)
        for number in _SIGNALS_TO_END:
            if callable(signal.getsignal(number)):  # Not ignored, nor left to the system.
                self._handlers[number] = signal.signal(number, self._on_signal_to_end)

    def close(self) -> None:
        """Gives the signals back; closing twice does nothing."""
        self._is_closed.set()
        if threading.current_thread() is not threading.main_thread():
            return
        for number in self._handlers:
            handler = signal.getsignal(number)
            while isinstance(guard := getattr(handler, "__self__", None), Guard):
                if not guard._is_closed.is_set():
                    break
                handler = guard._handlers[number]
            signal.signal(number, handler)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def command(self, *, actions: int = 0, builds: bool = False) -> Generator[None]:
        """Runs an environment's code in this block. What it raises comes out as it is.

        Args:
            actions: how many it executes, for which it has as much time each.
            builds: whether it builds an instance as well.

        Raises:
            SilenceError: it took too long.
            BaseException: a person asked the process to end, whatever the environment made of
                that.
        """
        allowance_s = self.timeout_s * (1 + actions) + (START_TIMEOUT_S if builds else 0.0)
        is_timed = self._has_timer and threading.current_thread() is threading.main_thread()
        self.interrupt = None
        self._commands += 1
        self._allowance_s = allowance_s
        if is_timed:
            signal.setitimer(signal.ITIMER_REAL, allowance_s, _AGAIN_S)
        try:
            yield
        finally:
            self._allowance_s = None
            if is_timed:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            if self.interrupt is not None:
                raise self.interrupt

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        if self._allowance_s is None:
            return
        if sys.gettrace() is not None:  # A debugger: it is a person who is silent.
            self._allowance_s = None
            return
        raise SilenceError(f"no answer within {self.timeout_s:g} s per action")

    def _on_signal_to_end(self, number: int, frame: FrameType | None) -> None:
        try:
            self._handlers[number](number, frame)
        except BaseException as interrupt:
            if self._allowance_s is not None:
                self.interrupt = interrupt
            raise

    def _watch(self) -> None:
        """Counts looks, not seconds: a process that was paused has not been silent."""
        looks = commands = 0
        while not self._is_closed.wait(self.timeout_s / _TICKS):
            allowance_s = self._allowance_s
            if allowance_s is None or commands != self._commands:
                looks, commands = 0, self._commands
                continue
            looks += 1
            # A timer is given the time to be heard, and to be heard again.
            most_s = 2 * allowance_s + 3 * _AGAIN_S if self._has_timer else allowance_s
            if looks * self.timeout_s / _TICKS > most_s:
                line = (
                    f"error: an environment has not answered for {most_s:g} s and cannot be "
                    "interrupted — host it in worker processes: --environment.workers 1\n"
                )
                os.write(2, line.encode())
                os._exit(ForethoughtError.exit_code)


@contextmanager
def one_look(environment_id: str) -> Generator[None]:
    """An environment's code outside of any episode that could be given up.

    Raises:
        EnvironmentUnusableError: it is silent, or would end the process.
    """
    with Guard() as guard:
        try:
            with guard.command(builds=True):
                yield
        except (SilenceError, SystemExit, KeyboardInterrupt) as error:
            if guard.interrupt is not None:
                raise
            raise EnvironmentUnusableError(f"{environment_id}: {in_one_line(error)}") from error


def in_one_line(error: BaseException) -> str:
    """What an environment raised, for a sentence."""
    lines: list[str] = []
    with suppress(Exception):  # Of an exception whose text is code of the environment, too.
        lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
