"""`forethought serve`: a trained policy behind the protocol gives the answers that it gives."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from forethought.agents.sources import find_source
from forethought.cli.serve import Serve, load_served
from forethought.models.loading import BEHAVIOR
from forethought.rollouts.store import read_shards
from forethought.serving.admission import Limits
from forethought.serving.engine import Engine
from forethought.serving.server import serving
from forethought.types import Trajectory
from tests.unit.cli.terminal import Type

LIMITS = Limits(
    request_bytes=2**20, concurrency=64, timeout_s=60.0, prompt_bytes=2**20, max_new_tokens=128
)


@contextmanager
def served(run: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The run behind the address that OPENAI_BASE_URL names, as `player`."""
    torch.set_num_threads(1)
    policy, check = load_served(
        Serve(str(run), max_batch_size=4), Path(find_source(str(run)).model)
    )
    engine = Engine(policy, check, seed=0)
    with serving(engine, model="player", host="127.0.0.1", port=0, limits=LIMITS) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        yield
    engine.stop()


def said(folder: str) -> list[tuple[int, list[tuple[str, str, str]]]]:
    """Of every episode: what was asked, answered and done."""

    def steps(trajectory: Trajectory) -> list[tuple[str, str, str]]:
        return [
            (step.prompt.messages[-1].text, step.completion.text, step.completion.finish_reason)
            for step in trajectory.steps
        ]

    return [(trajectory.seed, steps(trajectory)) for trajectory in read_shards(Path(folder))]


def test_greedy_answers_are_the_same_behind_the_protocol(
    type_: Type, sft_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "--environment.id Bandit --episodes 6 --max-new-tokens 16 --threads 1"
    with served(sft_run, monkeypatch):
        for player, folder in ((str(sft_run), "own"), ("api:player", "api")):
            assert (
                type_(f"collect --policy {player} {where} --temperature 0 --output {folder}").code
                == 0
            )
        evaluated = [
            json.loads(type_(f"evaluate {player} {where} --json").out)
            for player in (str(sft_run), "api:player")
        ]
    assert said("api") == said("own")
    assert any(text for _, steps in said("own") for _, text, _ in steps)
    own, api = evaluated
    for name in ("success_rate", "mean_return", "invalid_rate", "mean_episode_steps"):
        assert own[name] == api[name]


def test_a_run_with_values_answers_by_them(
    type_: Type, valued_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the protocol as at home; otherwise than the behavior that the values weigh."""
    behavior = Path(find_source(str(valued_run)).model) / BEHAVIOR
    how = "--episodes 6 --max-new-tokens 16 --temperature 0 --environment.id Bandit --threads 1"
    with served(valued_run, monkeypatch):
        for player, folder in ((valued_run, "own"), ("api:player", "api"), (behavior, "alone")):
            assert type_(f"collect --policy {player} {how} --output {folder}").code == 0
    assert said("api") == said("own") != said("alone")


def test_equal_seeds_give_equal_samples(
    type_: Type, sft_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = "--policy api:player --environment.id Bandit --episodes 4 --max-new-tokens 8 --threads 1"
    with served(sft_run, monkeypatch):
        for folder, seed in (("one", 1), ("again", 1), ("two", 2)):
            assert type_(f"collect {how} --seed {seed} --output {folder}").code == 0
    assert said("one") == said("again")
    assert [steps for _, steps in said("one")] != [steps for _, steps in said("two")]


def test_a_prompt_that_is_too_long_is_told_to_the_client(
    type_: Type, sft_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(sft_run, monkeypatch):
        words = "evaluate api:player --environment.id Bandit --episodes 2 --max-new-tokens 129"
        outcome = type_(words)
    assert outcome.code == 2
    # The server is in this process, too, and may log its second answer behind our error.
    (error,) = (line for line in outcome.lines if line.startswith("error: "))
    assert "status 400: max_tokens is 129 — expected 128 at most" in error


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted(sft_run: Path) -> None:
    words = [sys.executable, "-m", "forethought", "serve", str(sft_run)]
    words += ["--port", "0", "--threads", "1"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(rf"serving {re.escape(str(sft_run))} at (http://\S+/v1)\n", line)
        assert found is not None
        evaluate = [*words[:3], "evaluate", f"api:{sft_run}", "--environment.id", "Bandit"]
        result = subprocess.run(
            [*evaluate, "--episodes", "2", "--max-new-tokens", "8", "--json"],
            env=environment | {"OPENAI_BASE_URL": found[1]},
            capture_output=True,
            text=True,
        )
        assert json.loads(result.stdout)["episodes"] == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert process.stderr.read().endswith("interrupted\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("serve", "RUN is missing"),
        ("serve nowhere", "model 'nowhere' does not exist here"),
        ("serve api:m", "api:m is served already"),
        ("serve x --port 70000", "port is 70000 — expected 0 to 65535"),
        ("serve x --timeout-s 0", "timeout_s is 0.0 — expected above 0"),
        ("serve x --concurrency 0", "concurrency is 0 — expected 1 or more"),
    ],
)
def test_a_refusal_is_one_line(type_: Type, words: str, line: str) -> None:
    outcome = type_(words)
    assert outcome.code == 2
    assert outcome.lines[-1].startswith(f"error: {line}")


def test_a_port_that_is_taken_is_one_line(type_: Type, sft_run: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = type_(f"serve {sft_run} --port {port}")
    assert outcome.code == 2
    assert outcome.lines[-1] == f"error: 127.0.0.1:{port}: cannot listen: Address already in use"


def test_a_run_is_evaluated_through_an_engine_that_serves_it(
    type_: Type, sft_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "--episodes 6 --max-new-tokens 16 --threads 1 --json"
    with served(sft_run, monkeypatch):
        engine = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")
        own, remote = (
            json.loads(type_(f"evaluate {sft_run} {where} {flag}").out)
            for flag in ("", f"--engine {engine}")
        )
    for name in ("success_rate", "mean_return", "invalid_rate", "tokens_per_response"):
        assert remote.get(name) == own.get(name)
    assert remote["checkpoint"] == own["checkpoint"]
