"""What an environment may do to a run in its own process: lose an episode, and nothing else."""

import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from forethought.environments import guard
from forethought.environments.guard import Guard, SilenceError, one_look
from forethought.environments.vector import (
    Act,
    Failed,
    InProcessRunner,
    Observed,
    Replay,
    Reset,
    Result,
    Runner,
    SubprocessRunner,
)
from forethought.errors import EnvironmentUnusableError
from forethought.types import EnvironmentFailure
from tests.unit.environments.hostile_environment import HOSTILE, HostileEnvironment

CRASH, TIMEOUT = EnvironmentFailure.CRASH, EnvironmentFailure.TIMEOUT


@pytest.fixture
def runner() -> Runner:
    return InProcessRunner(HostileEnvironment, 1, timeout_s=0.2)


def ask(runner: Runner, command: Reset | Act | Replay) -> Result:
    runner.send(0, command)
    (answer,) = runner.receive()
    return answer


def failed(runner: Runner, action: str) -> Failed:
    """What the second step of an episode came to; the slot is whole again afterwards."""
    ask(runner, Reset(5))
    ask(runner, Act("add"))
    answer = ask(runner, Act(action))
    assert isinstance(answer, Failed), answer
    again = ask(runner, Replay(5, ("add",)))
    assert isinstance(again, Observed)
    assert again.observation.state_key == "5 1"
    return answer


@pytest.mark.parametrize("action", ["hang", "swallow"])
def test_silence_is_an_answer_in_this_process_too(runner: Runner, action: str) -> None:
    answer = failed(runner, action)
    assert answer.failure is TIMEOUT
    assert answer.message == "seed 5, step 2: SilenceError: no answer within 0.2 s per action"


@pytest.mark.parametrize(
    ("action", "name"), [("exit", "SystemExit: 0"), ("interrupt", "KeyboardInterrupt")]
)
@pytest.mark.parametrize("workers", [0, 1])
def test_an_environment_cannot_end_the_run(action: str, name: str, workers: int) -> None:
    made = SubprocessRunner(HostileEnvironment, 1, workers=1) if workers else None
    with made or InProcessRunner(HostileEnvironment, 1) as runner:
        assert failed(runner, action) == Failed(0, CRASH, f"seed 5, step 2: {name}")


@pytest.mark.parametrize("action", HOSTILE)
def test_a_value_that_nobody_could_learn_from_is_a_crash(runner: Runner, action: str) -> None:
    answer = failed(runner, action)
    assert answer.failure is CRASH
    assert answer.message.startswith("seed 5, step 2: EnvironmentCheckError: ")
    assert " — expected " in answer.message


def test_a_reward_of_numpy_becomes_a_number(runner: Runner) -> None:
    """A checkpoint holds the sum of an episode's rewards as JSON."""
    import numpy as np

    class PaysNumpy(HostileEnvironment):
        def step(self, action: str):  # type: ignore[no-untyped-def]
            return super().step(action)._replace(reward=np.float32(0.5))  # type: ignore[arg-type]

    with InProcessRunner(PaysNumpy, 1) as paying:
        ask(paying, Reset(0))
        answer = ask(paying, Act("add"))
        assert isinstance(answer, Observed)
        assert answer.transition is not None
        assert type(answer.transition.reward) is float


# A person's Ctrl-C


class Swallows(HostileEnvironment):
    """Sends a signal to its own process in the middle of a step, and hides what comes of it."""

    how = "nothing"

    def step(self, action: str):  # type: ignore[no-untyped-def]
        if action != "end":
            return super().step(action)
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException as error:
            if self.how == "another error":
                raise ValueError("no") from error
            if self.how == "the same":
                raise
        return super().step("add")


@pytest.mark.usefixtures("hears_sigint")
@pytest.mark.parametrize("how", ["nothing", "another error", "the same"])
def test_ctrl_c_ends_the_run_whatever_the_environment_makes_of_it(how: str) -> None:
    Swallows.how = how
    with InProcessRunner(Swallows, 1) as runner:
        ask(runner, Reset(0))
        with pytest.raises(KeyboardInterrupt):
            runner.send(0, Act("end"))


@pytest.mark.usefixtures("hears_sigint")
def test_signals_are_given_back_in_any_order() -> None:
    numbers = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    one, other = Guard(), Guard()
    one.open()
    other.open()
    one.close()
    with pytest.raises(KeyboardInterrupt), other.command():
        signal.raise_signal(signal.SIGINT)
    other.close()
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_timer_of_somebody_else_is_left_alone() -> None:
    def theirs(*_: object) -> None: ...

    before = signal.signal(signal.SIGALRM, theirs)
    try:
        with Guard(), Guard() as inner, inner.command():
            assert signal.getsignal(signal.SIGALRM) is theirs
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_no_timer_runs_between_commands() -> None:
    with Guard() as watched:
        with watched.command(actions=3):
            left, again = signal.getitimer(signal.ITIMER_REAL)
            assert 200 < left <= 240
            assert again > 0
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


# Where nothing can be interrupted


UNINTERRUPTIBLE = """
import ctypes, threading
from forethought.environments.vector import Act, InProcessRunner, Reset
from tests.unit.environments.hostile_environment import HostileEnvironment

class Deaf(HostileEnvironment):
    def step(self, action):
        while True:  # the C library waits, and Python's signal handlers with it
            ctypes.CDLL(None).poll(None, 0, -1)

def play():
    with InProcessRunner({environment}, 1, timeout_s=0.2) as runner:
        runner.send(0, Reset(0))
        runner.receive()
        runner.send(0, Act("hang"))
    print("the run goes on")

{how}
"""
DEAF = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])"


@pytest.mark.parametrize(
    ("environment", "how"),
    [
        ("HostileEnvironment", "threading.Thread(target=play).start()"),
        ("Deaf", f"import signal; {DEAF}; play()"),
    ],
    ids=["outside the main thread", "deaf to signals"],
)
def test_what_cannot_be_interrupted_is_told_and_ends_the_run(
    environment: str, how: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNINTERRUPTIBLE.format(environment=environment, how=how))
    paths = os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.startswith("error: an environment has not answered for ")
    assert done.stderr.endswith("host it in worker processes: --environment.workers 1\n")


def test_a_guard_ends_its_thread() -> None:
    before = threading.active_count()
    for _ in range(3):
        with Guard(0.1) as watched, watched.command():
            pass
        watched._thread.join()
    assert threading.active_count() <= before


# Outside of episodes


@pytest.mark.parametrize("trouble", ["exit", "interrupt", "hang"])
def test_one_look_is_refused_in_one_line(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "START_TIMEOUT_S", 0.1)
    monkeypatch.setattr(Guard.__init__, "__defaults__", (0.1,))
    with pytest.raises(EnvironmentUnusableError, match=r"^Count: \w+(: .+)?$"), one_look("Count"):
        HostileEnvironment().step(trouble)


def test_a_bug_seen_in_one_look_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), one_look("Count"):
        _ = 1 / 0


def test_silence_is_no_exception_that_environments_catch() -> None:
    assert not issubclass(SilenceError, Exception)
    assert partial(HostileEnvironment)().step("add").reward == 1.0
