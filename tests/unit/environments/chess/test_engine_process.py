"""The engine as a process: the same answers every time, and no trouble that it can make is
mistaken for a reward."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from forethought.cli import doctor
from forethought.environments import make_environment
from forethought.environments.chess import engine, game, stockfish
from forethought.environments.chess.engine import (
    EngineCrashError,
    EngineTimeoutError,
    UciProcess,
    find_stockfish,
    require_stockfish,
)
from forethought.environments.chess.game import Chess
from forethought.environments.chess.stockfish import Stockfish
from forethought.environments.contract import Transition
from forethought.environments.vector import Act, Failed, InProcessRunner, Observed, Reset
from forethought.errors import ConfigError, MissingDependencyError
from forethought.types import EnvironmentFailure
from tests.skips import needs
from tests.unit.environments.chess.engines import ANSWER, DIE, HANG, fake_engine, first

needs_stockfish = pytest.mark.skipif(
    find_stockfish() is None, reason=needs("Stockfish", engine.PACKAGE)
)

MOVES = ("e2e4", "g1f3", "f1c4", "e1g1", "d2d3", "b1c3", "c1g5", "a2a3")
GONE_WITHIN_S = 20.0


def engine_of(environment: Chess) -> Stockfish:
    engine: object = vars(environment)["_opponent"]
    assert isinstance(engine, Stockfish)
    return engine


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process_id}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def has_gone(process_id: int) -> bool:
    give_up_s = time.monotonic() + GONE_WITHIN_S
    while is_running(process_id):
        if time.monotonic() > give_up_s:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def environment() -> Iterator[Chess]:
    made = Chess()
    yield made
    made.close()


def play(environment: Chess, seed: int, disturb: int | None = None) -> list[str]:
    """Plays what is legal of `MOVES`; at move number `disturb` the engine is killed."""
    environment.reset(seed)
    states: list[str] = []
    for number, move in enumerate(MOVES):
        if number == disturb:
            process_id = engine_of(environment).process_id
            assert process_id is not None
            os.kill(process_id, signal.SIGKILL)
            assert has_gone(process_id)
        if move in environment.legal_actions():
            environment.step(move)
        states.append(environment.observation().state_key)
    return states


@needs_stockfish
def test_a_seed_is_a_game(environment: Chess) -> None:
    """Whatever else was asked of the engine, and whichever process answers."""
    games = [play(environment, seed) for seed in (1, 2, 1)]
    assert games[0] == games[2] != games[1]
    environment.reset(1)
    environment.expert()
    environment.close()
    assert play(environment, 1, disturb=4) == games[0]
    assert dict(environment.metrics())["engine_restarts"] == 1
    assert dict(environment.metrics())["illegal_moves"] == 0


@needs_stockfish
def test_a_search_depends_on_nothing_but_the_question() -> None:
    """Neither on what the engine was asked before, nor on how often."""
    process = UciProcess(
        require_stockfish(), stockfish.OPTIONS, start_timeout_s=60.0, timeout_s=60.0
    )
    question = ("startpos moves e2e4 e7e5 g1f3 b8c6 f1c4", "nodes 3000", 2)
    first = process.search(*question)
    process.search("startpos moves e2e4 e7e5 g1f3 b8c6 f1c4 g8f6", "nodes 5000", 1)
    assert process.search(*question) == first
    assert process.search(*question) == first
    process.close()


@needs_stockfish
def test_the_expert_and_the_data_policy_play_legal_moves(environment: Chess) -> None:
    environment.reset(3)
    player = environment.data_policy(0.5, np.random.default_rng(0))
    for _ in range(6):
        assert player().action in environment.legal_actions()
        expert_action = environment.expert()
        assert expert_action.action in environment.legal_actions()
        assert environment.step(expert_action.action).reward >= 0
    for skill in (-0.1, 1.1):
        with pytest.raises(ConfigError, match="0 to 1"):
            environment.data_policy(skill, np.random.default_rng(0))
    with pytest.raises(ConfigError, match="opponent=stockfish"):
        Chess(opponent="builtin").data_policy(0.5, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("trouble", "failure", "words"),
    [
        pytest.param(
            DIE, EnvironmentFailure.CRASH, "the engine has ended (exit code 3)", id="dies"
        ),
        pytest.param(HANG, EnvironmentFailure.TIMEOUT, "did not answer within 0.5 s", id="hangs"),
        pytest.param(
            'echo "info score cp 1 pv e2e5"; echo "bestmove e2e5"',
            EnvironmentFailure.CRASH,
            "'e2e5', which is illegal in rnbqkbnr",
            id="cheats",
        ),
        pytest.param(
            'echo "bestmove (none)"', EnvironmentFailure.CRASH, "'bestmove (none)'", id="gives up"
        ),
    ],
)
def test_trouble_twice_is_a_failure_and_no_reward(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trouble: str,
    failure: EnvironmentFailure,
    words: str,
) -> None:
    monkeypatch.setattr(stockfish, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(game, "RANDOM_RATE", 0.0)
    path = fake_engine(tmp_path, trouble)
    with InProcessRunner(partial(make_environment, "Chess", stockfish=path), 1) as runner:
        for command in (Reset(0), Act("e2e4")):
            runner.send(0, command)
            (answer,) = runner.receive()
        assert isinstance(answer, Failed)
        assert answer.failure is failure
        assert words in answer.message


@pytest.mark.parametrize("trouble", [DIE, HANG])
def test_trouble_once_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setattr(stockfish, "TIMEOUT_S", 5.0 if trouble == DIE else 1.0)
    monkeypatch.setattr(game, "RANDOM_RATE", 0.0)
    path = fake_engine(tmp_path, first(trouble, tmp_path))
    with InProcessRunner(partial(make_environment, "Chess", stockfish=path), 1) as runner:
        for command in (Reset(0), Act("e2e4")):
            runner.send(0, command)
            (answer,) = runner.receive()
        assert isinstance(answer, Observed)
        assert answer.transition == (0.0, False, False)
        assert dict(answer.metrics)["engine_restarts"] == 1


def test_a_failure_leaves_the_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game, "RANDOM_RATE", 0.0)
    environment = Chess(stockfish=fake_engine(tmp_path, DIE))
    before = environment.reset(0)
    with pytest.raises(EngineCrashError):
        environment.step("e2e4")
    assert environment.observation().state_key == before.state_key
    Path(tmp_path / "engine").unlink()
    with pytest.raises(EngineCrashError, match="cannot be started: No such file"):
        environment.step("e2e4")
    assert issubclass(EngineTimeoutError, TimeoutError)


def test_an_illegal_move_asks_no_engine(tmp_path: Path) -> None:
    environment = Chess(stockfish=fake_engine(tmp_path, DIE))
    environment.reset(0)
    assert environment.step("e2e5") == Transition(-1.0, False, False)
    assert engine_of(environment).process_id is None


def test_without_stockfish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv(engine.VARIABLE, raising=False)
    monkeypatch.setattr(engine, "_ELSEWHERE", ())
    with pytest.raises(MissingDependencyError, match="apt-get install stockfish") as caught:
        make_environment("Chess")
    assert "\n" not in str(caught.value)
    assert make_environment("Chess", opponent="builtin").reset(0).task_type.endswith("opponent")
    with pytest.raises(MissingDependencyError, match="'/no/engine', not found"):
        require_stockfish("/no/engine")
    (finding,) = (f for f in doctor.check_environments() if f.name == "stockfish")
    assert (finding.status, finding.fix) == ("missing", "apt-get install stockfish")
    assert not finding.is_fatal


def test_the_terminals_signals_are_the_parents_affair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C goes to a group of processes; an engine has one of its own."""
    monkeypatch.setattr(game, "RANDOM_RATE", 0.0)
    environment = Chess(stockfish=fake_engine(tmp_path, ANSWER))
    environment.reset(0)
    environment.step("e2e4")
    process_id = engine_of(environment).process_id
    assert process_id is not None
    assert os.getpgid(process_id) == process_id
    environment.close()


PARENT = """
import os, signal, sys, time
from forethought.environments.chess import game
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
game.RANDOM_RATE = 0.0
environment = game.Chess(stockfish=sys.argv[1])
environment.reset(0)
environment.step("e2e4")
print(environment._opponent.process_id, flush=True)
{then}
"""


@contextmanager
def parent_of_an_engine(path: str, then: str) -> Generator[tuple["subprocess.Popen[str]", int]]:
    """A process with an engine, and the engine's process id. It ends with the block."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then), path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            said = process.stdout.readline()
            assert said.strip().isdecimal(), process.stderr.read()
            yield process, int(said)
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("then", "blow"),
    [
        pytest.param("time.sleep(600)", signal.SIGKILL, id="killed"),
        pytest.param("time.sleep(600)", signal.SIGINT, id="Ctrl-C"),
        pytest.param("sys.exit(1)", None, id="leaves without closing"),
    ],
)
def test_no_engine_outlives_its_parent(
    tmp_path: Path, then: str, blow: signal.Signals | None
) -> None:
    path = find_stockfish() or fake_engine(tmp_path, ANSWER)
    with parent_of_an_engine(path, then) as (process, engine):
        if blow is not None:
            assert is_running(engine)
            os.killpg(process.pid, blow)  # as a terminal does: the whole group
        process.wait(GONE_WITHIN_S)
        assert has_gone(engine)


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        pytest.param("exec cat", "it repeats what it is told", id="repeats"),
        pytest.param("exec yes", "it wrote 4 MiB without 'uciok'", id="writes without end"),
        pytest.param("exec cat /dev/zero", "it wrote 4 MiB without 'uciok'", id="one endless line"),
        pytest.param("exec sleep 600", "the engine did not answer within 0.5 s", id="silent"),
        pytest.param("exit 3", "the engine has ended (exit code 3)", id="ends"),
    ],
)
def test_a_program_that_is_no_engine_is_refused_before_a_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, complaint: str
) -> None:
    """In one line, and it is gone: without a time limit where it says what it is not."""
    monkeypatch.setattr(stockfish, "START_TIMEOUT_S", 0.5 if "sleep" in program else 600.0)
    path = tmp_path / "engine"
    path.write_text(f"#!/bin/sh\necho $$ > {tmp_path.as_posix()!r}/id\n{program}\n")
    path.chmod(0o755)
    with pytest.raises(ConfigError) as caught:
        make_environment("Chess", stockfish=str(path))
    assert str(caught.value) == (
        f"stockfish is {str(path)!r} — expected a chess engine that speaks UCI, but {complaint}; "
        "name the path of one (or play the weaker built-in opponent: opponent=builtin)"
    )
    assert has_gone(int((tmp_path / "id").read_text()))


@needs_stockfish
def test_closing_ends_the_engine_and_another_game_starts_one(environment: Chess) -> None:
    play(environment, 0)
    process_id = engine_of(environment).process_id
    assert process_id is not None
    environment.close()
    assert has_gone(process_id)
    environment.close()
    play(environment, 0)
    assert engine_of(environment).process_id not in (None, process_id)
    assert dict(environment.metrics())["engine_restarts"] == 0
