"""Runners: answers as they come, and nothing lost when an environment is."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from forethought.environments import make_environment
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
from forethought.errors import ConfigError
from forethought.types import EnvironmentFailure

TROUBLE = partial(make_environment, "troublesome_environment:FaultyEnvironment")
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _helper_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)  # spawned workers inherit sys.path


@pytest.fixture(params=["in process", "in workers"])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    if request.param == "in process":
        made: Runner = InProcessRunner(TROUBLE, 3)
    else:
        made = SubprocessRunner(TROUBLE, 3, workers=2, timeout_s=30)
    with made:
        yield made


def ask(runner: Runner, slot: int, command: Reset | Act | Replay) -> Result:
    runner.send(slot, command)
    (answer,) = runner.receive()
    assert answer.slot == slot
    return answer


def reply(answer: Result) -> Observed:
    assert isinstance(answer, Observed), answer
    return answer


def test_commands_are_executed_and_answered_in_the_order_of_slots(runner: Runner) -> None:
    assert (runner.slots, runner.actions) == (3, ("add", "raise", "exit", "hang", "end"))
    for slot in (2, 0, 1):
        runner.send(slot, Reset(10 * slot))
    answers: list[Result] = []
    while len(answers) < 3:
        some = runner.receive()
        assert [answer.slot for answer in some] == sorted(answer.slot for answer in some)
        answers += some
    keys = {answer.slot: reply(answer).observation.state_key for answer in answers}
    assert keys == {0: "0", 1: "10", 2: "20"}
    first = reply(ask(runner, 1, Act("add")))
    assert first.transition == (1.0, False, False)
    assert first.metrics == (("count", 11.0),)
    assert not first.success
    assert first.expert_action is None
    last = reply(ask(runner, 1, Act("end")))
    assert last.transition == (1.0, True, False)
    assert last.success


def test_replay_leads_to_the_state_and_gives_the_last_transition(runner: Runner) -> None:
    assert reply(ask(runner, 0, Replay(5, ()))).transition is None
    restored = reply(ask(runner, 0, Replay(5, ("add", "add"))))
    assert (restored.observation.state_key, restored.transition) == ("7", (1.0, False, False))
    assert reply(ask(runner, 0, Act("add"))).observation.state_key == "8"


def test_an_exception_is_an_answer_and_the_slot_gets_a_fresh_instance(runner: Runner) -> None:
    ask(runner, 0, Reset(1))
    answer = ask(runner, 0, Act("raise"))
    assert answer == Failed(0, EnvironmentFailure.CRASH, "seed 1, step 1: ValueError: as asked")
    with pytest.raises(RuntimeError, match="no episode"):
        runner.send(0, Act("add"))
    assert reply(ask(runner, 0, Replay(1, ("add",)))).observation.state_key == "2"


def test_misuse_is_refused(runner: Runner) -> None:
    with pytest.raises(RuntimeError, match="no command is outstanding"):
        runner.receive()
    with pytest.raises(RuntimeError, match="no episode"):
        runner.send(0, Act("add"))
    runner.send(0, Reset(0))
    with pytest.raises(RuntimeError, match=r"not executed|not been received"):
        runner.send(0, Act("add"))
    runner.receive()
    ask(runner, 0, Act("end"))
    with pytest.raises(RuntimeError, match="is over"):
        runner.send(0, Act("add"))


def test_advice_is_given_on_request_until_the_episode_ends() -> None:
    with InProcessRunner(TROUBLE, 1, with_expert=True) as runner:
        expert_action = reply(ask(runner, 0, Reset(0))).expert_action
        assert expert_action is not None
        assert expert_action.action == "add"
        assert reply(ask(runner, 0, Act("end"))).expert_action is None


@pytest.fixture
def one_worker() -> Iterator[SubprocessRunner]:
    """Three slots in one process, so that each one's trouble is the others'."""
    with SubprocessRunner(TROUBLE, 3, workers=1, timeout_s=0.5) as runner:
        for slot in range(3):
            ask(runner, slot, Reset(100 * slot))
        ask(runner, 1, Act("add"))
        yield runner


def answers_of(runner: Runner, count: int) -> dict[int, Result]:
    answers: dict[int, Result] = {}
    while len(answers) < count:
        answers |= {answer.slot: answer for answer in runner.receive()}
    return answers


@pytest.mark.parametrize(
    ("trouble", "failure", "message"),
    [
        ("exit", EnvironmentFailure.CRASH, "the worker process ended (exit code 3)"),
        ("hang", EnvironmentFailure.TIMEOUT, "no answer within 0.5 s per action"),
    ],
)
def test_a_lost_worker_costs_one_command(
    one_worker: SubprocessRunner, trouble: str, failure: EnvironmentFailure, message: str
) -> None:
    (before,) = one_worker.process_ids
    one_worker.send(0, Act(trouble))
    one_worker.send(1, Act("add"))  # waits behind the trouble: executed by the replacement
    answers = answers_of(one_worker, 2)
    assert answers[0] == Failed(0, failure, message)
    assert reply(answers[1]).observation.state_key == "102"
    assert one_worker.process_ids != (before,)
    # slot 2 had nothing outstanding: its episode is restored unseen
    assert reply(ask(one_worker, 2, Act("add"))).observation.state_key == "201"
    assert reply(ask(one_worker, 2, Act("add"))).observation.state_key == "202"
    assert reply(ask(one_worker, 0, Replay(0, ("add",)))).observation.state_key == "1"


def test_a_worker_killed_while_idle_is_replaced_unseen(one_worker: SubprocessRunner) -> None:
    (before,) = one_worker.process_ids
    assert before is not None
    os.kill(before, signal.SIGKILL)
    os.waitid(os.P_PID, before, os.WEXITED | os.WNOWAIT)
    assert reply(ask(one_worker, 1, Act("add"))).observation.state_key == "102"


def test_a_replay_may_take_longer_than_one_action(one_worker: SubprocessRunner) -> None:
    (before,) = one_worker.process_ids
    assert before is not None
    os.kill(before, signal.SIGSTOP)
    threading.Timer(0.8, os.kill, (before, signal.SIGCONT)).start()
    one_worker.send(0, Replay(0, ("add",) * 3))  # 2 s instead of 0.5 s
    assert reply(one_worker.receive()[0]).observation.state_key == "3"
    assert one_worker.process_ids == (before,)


def test_slow_slots_keep_nobody_waiting() -> None:
    with SubprocessRunner(TROUBLE, 2, workers=2, timeout_s=60) as runner:
        for slot in range(2):
            ask(runner, slot, Reset(0))
        runner.send(0, Act("hang"))
        for count in range(1, 4):
            assert reply(ask(runner, 1, Act("add"))).observation.state_key == str(count)


def test_what_a_worker_cannot_build_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="mood is 'unwilling'"):
        SubprocessRunner(partial(TROUBLE, mood="unwilling"), 2, workers=2)
    with pytest.raises(RuntimeError, match="KeyError: 'a bug'"):
        SubprocessRunner(partial(TROUBLE, mood="broken"), 1, workers=1)
    with pytest.raises(TypeError, match="can be pickled"):
        SubprocessRunner(lambda: TROUBLE(), 1, workers=1)
    with pytest.raises(ValueError, match="at least one slot"):
        InProcessRunner(TROUBLE, 0)


def await_end(process_id: int, patience_s: float = 5.0) -> None:
    """Waits until a process has ended (a zombie has)."""
    give_up_s = time.monotonic() + patience_s
    while time.monotonic() < give_up_s:
        try:
            state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"process {process_id} is still there after {patience_s} s")


PARENT = """
import signal, sys
from functools import partial
from forethought.environments import make_environment
from forethought.environments.vector import Act, Reset, SubprocessRunner

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    factory = partial(make_environment, "troublesome_environment:FaultyEnvironment")
    runner = SubprocessRunner(factory, 2, workers=2)
    for slot in range(2):
        runner.send(slot, Reset(0))
    while runner._ledger._records[0].outstanding or runner._ledger._records[1].outstanding:
        runner.receive()
    runner.send(0, Act("hang"))
    print(*runner.process_ids, flush=True)
    if sys.argv[1] == "leave":
        sys.exit()
    runner.receive()
"""


@pytest.mark.parametrize("way", ["leave", "interrupt", "kill"])
def test_no_worker_outlives_its_parent(way: str, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    paths = os.pathsep.join([str(HERE), *sys.path])
    with subprocess.Popen(
        [sys.executable, str(script), way],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    ) as parent:
        assert parent.stdout is not None
        workers = [int(word) for word in parent.stdout.readline().split()]
        assert len(workers) == 2
        if way != "leave":
            parent.send_signal(signal.SIGINT if way == "interrupt" else signal.SIGKILL)
        for worker in workers:
            await_end(worker)
        errors = parent.communicate()[1]
    assert "Process SpawnProcess" not in errors  # no worker's traceback reaches the user


def test_closing_ends_all_workers_and_may_be_done_twice() -> None:
    runner = SubprocessRunner(TROUBLE, 4, workers=2)
    workers = runner.process_ids
    runner.send(0, Reset(0))
    runner.close()
    runner.close()
    for worker in workers:
        assert worker is not None
        await_end(worker)
    with pytest.raises(RuntimeError, match="closed"):
        runner.send(1, Reset(0))
