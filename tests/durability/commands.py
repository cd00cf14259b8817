"""Commands in processes of their own, which a test strikes at a chosen place.

The processes are forked from one that has loaded the libraries already, and otherwise do
what `forethought` does. `start` is the real command line, seconds slower.
"""

import importlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

from tests.typed import words_of

TIMEOUT_S = 1200.0
"""So long only where something hangs, on a machine that is busy."""
NOWHERE = Path(os.devnull)

_FORK = multiprocessing.get_context("forkserver")
_FORK.set_forkserver_preload(
    [
        *("forethought.cli.train", "forethought.cli.evaluate", "forethought.agents.sources"),
        *("forethought.algorithms.sft.train", "forethought.algorithms.ppo.train"),
        *("forethought.generation.huggingface", "torch.utils.tensorboard.writer"),
        *("forethought.training.workers", "forethought.cli.collect", "forethought.cli.serve"),
    ]
)


class Strike(NamedTuple):
    """What happens to a command, and where."""

    place: str
    """`module:function`, or `module:Class.method`, as the caller knows it."""
    call: int
    """At the beginning of its n-th call, from 1."""
    blow: signal.Signals | OSError
    """A signal to the process, or an error that the call raises."""


_BAR = re.compile(r"%\||^\w+: \d+it \[")
"""A progress bar, of a number that is known beforehand or is not."""


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    """As shells count: 130 for Ctrl-C. Of a process that was killed, minus the signal."""
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What stderr holds beside progress bars."""
        shown = [line.rpartition("\r")[2] for line in self.err.splitlines()]
        return [line for line in shown if line.strip() and not _BAR.search(line)]


def run(words: str, *, strike: Strike | None = None) -> Outcome:
    """What became of a command.

    Args:
        words: what is typed behind `forethought`.
        strike: without one, the command runs to its end.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = fork(words_of(words), out, err, strike=strike)
        process.join(TIMEOUT_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"{words}: has not ended; stderr: {err.read_text()[-2000:]}")
        return Outcome(process.exitcode, out.read_text(), err.read_text())


def fork(
    words: list[str], out: Path, err: Path, *, strike: Strike | None = None
) -> ForkServerProcess:
    """A command under way, whose output goes behind what the files hold; both may be one."""
    process = _FORK.Process(target=_run, args=(words, strike, out, err))
    process.start()
    return process


@contextmanager
def forked(words: str, log: Path = NOWHERE) -> Generator[ForkServerProcess]:
    """A command under way, which the block kills; its output goes to a file."""
    process = fork(words_of(words), log, log)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def start(words: str) -> subprocess.Popen[bytes]:
    """The real command line, under way, with its stderr in a pipe; the head of a group of
    processes, as in a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "forethought", *words_of(words)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def pause(process: subprocess.Popen[Any]) -> None:
    """A moment, while a command is waited for that is to be struck later."""
    assert process.poll() is None, "ended before it was struck"
    time.sleep(0.005)


def wait_for(what: Callable[[], bool], *are_alive: Callable[[], bool]) -> None:
    """Returns when it is so; those that bring it about live until then."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not what():
        assert time.monotonic() < deadline_s
        assert all(is_alive() for is_alive in are_alive)
        time.sleep(0.02)


def _run(words: list[str], strike: Strike | None, out: Path, err: Path) -> None:
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    # As in a fresh process: what the fork server did with signals is not ours.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if strike is not None:
        _aim(strike)
    from forethought.cli.main import main

    sys.exit(main(words))


def _aim(strike: Strike) -> None:
    module, _, path = strike.place.partition(":")
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    setattr(owner, name, _struck(getattr(owner, name), strike))


def _struck(function: Callable[..., Any], strike: Strike) -> Callable[..., Any]:
    calls = 0

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == strike.call:
            if isinstance(strike.blow, OSError):
                raise strike.blow
            os.kill(os.getpid(), strike.blow)
        return function(*args, **kwargs)

    return call
