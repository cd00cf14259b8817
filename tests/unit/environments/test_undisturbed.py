"""Ctrl-C while a worker process is being started."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from forethought.environments.worker import undisturbed


def by_another_thread() -> Callable[[], None]:
    """What makes a thread that blocks nothing take the signal."""
    struck = threading.Event()

    def strike() -> None:
        struck.wait()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    thread = threading.Thread(target=strike)
    thread.start()

    def now() -> None:
        struck.set()
        thread.join()

    return now


def by_this_thread() -> Callable[[], None]:
    return lambda: signal.raise_signal(signal.SIGINT)


@pytest.fixture
def ctrl_c_is_heard() -> Iterator[None]:
    """As in a program that was started from a terminal. Where the shell ignores SIGINT, as it
    does for the background jobs of a script, Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_is_heard")
@pytest.mark.parametrize("prepare", [by_another_thread, by_this_thread])
def test_ctrl_c_waits_for_the_end_of_the_block(prepare: Callable[[], Callable[[], None]]) -> None:
    strike, steps = prepare(), list[int]()
    before = signal.getsignal(signal.SIGINT)

    def start() -> None:
        with undisturbed():
            strike()
            steps.extend(range(3))

    with pytest.raises(KeyboardInterrupt):
        start()
    assert steps == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_a_process_that_is_started_in_it_is_not_told() -> None:
    struck = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('here')"
    with undisturbed():
        told = subprocess.run([sys.executable, "-c", struck], capture_output=True, check=True)
    assert told.stdout == b"here\n"


def test_without_a_signal_and_in_another_thread_nothing_happens() -> None:
    ran: list[bool] = []

    def start() -> None:
        with undisturbed():
            ran.append(True)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    with undisturbed():
        ran.append(True)
    assert ran == [True, True]
