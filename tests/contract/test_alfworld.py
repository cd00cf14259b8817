"""ALFWorld keeps Gymnasium's contract and ours, and plays in worker processes."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from forethought.algorithms.registry import algorithm_of
from forethought.configs.file import load_any_config
from forethought.environments import make_environment
from forethought.environments.check import check_environment
from forethought.environments.vector import (
    Act,
    Failed,
    InProcessRunner,
    Observed,
    Replay,
    Reset,
    SubprocessRunner,
)
from forethought.rollouts.task import open_task


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("cache")
    patch.setenv("FORETHOUGHT_CACHE", str(folder))
    patch.delenv("ALFWORLD_DATA", raising=False)
    return folder


@pytest.mark.parametrize(
    "options",
    [
        {"limit_steps": 25},
        {
            "view": "both",
            "image_size": 64,
            "reward": "reference",
            "match": "reference",
            "split": "valid_unseen",
            "limit_steps": 15,
        },
    ],
)
def test_ours(options: dict[str, Any]) -> None:
    check_environment(partial(make_environment, "ALFWorld", **options), episodes=2)


CONFIGS = sorted((Path(__file__).parents[2] / "configs" / "alfworld").glob("*.yaml"))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in CONFIGS])
def test_configs(path: Path) -> None:
    config = load_any_config(path)
    algorithm = path.stem.partition("_")[0]
    assert algorithm_of(config).name == algorithm
    command = f"#   forethought train {algorithm} --config configs/alfworld/{path.name}\n"
    assert command in path.read_text(encoding="utf-8")
    assert config.prompt.history == ("summary" if "summary" in path.stem else "none")
    task = open_task(config.environment, config.prompt, default_image_size=64)
    assert task.id == "ALFWorld"


def test_gymnasiums() -> None:
    environment = gymnasium.make("forethought/ALFWorld-v0", render_mode="rgb_array")
    check_env(environment.unwrapped)
    environment.close()


def test_processes_say_the_same() -> None:
    """Whatever the order of sets in a process is."""
    factory = partial(make_environment, "ALFWorld")
    here = make_environment("ALFWorld")
    here.reset(0)
    with SubprocessRunner(factory, 2, workers=2) as runner:
        for slot in range(2):
            runner.send(slot, Reset(0))
        _two(runner)
        for _ in range(5):
            action = here.expert().action
            here.step(action)
            for slot in range(2):
                runner.send(slot, Act(action))
            for reply in _two(runner):
                assert reply.observation.text == here.observation().text
                assert reply.observation.state_key == here.observation().state_key
                assert reply.legal_actions == here.legal_actions()


def _two(runner: SubprocessRunner) -> list[Observed]:
    replies: list[Observed] = []
    while len(replies) < 2:
        for answer in runner.receive():
            assert isinstance(answer, Observed), answer
            replies.append(answer)
    return replies


class _Player:
    """Plays one slot by a fixed rule, and writes down everything that it is told."""

    def __init__(self, slot: int) -> None:
        self.slot, self.seed, self.steps = slot, slot, 0
        self.actions: list[str] = []
        self.transcript: list[str] = []
        self.asked: Reset | Act | Replay = Reset(self.seed)
        self.retries = 0

    def next(self, answer: Observed | Failed) -> Reset | Act | Replay:
        """The next command, after an answer; a failure is tried again at the same place."""
        if isinstance(answer, Failed):
            self.retries += 1
            if isinstance(self.asked, Act):
                self.asked = Replay(self.seed, (*self.actions, self.asked.action))
            return self.asked
        if isinstance(self.asked, Act | Replay):
            assert answer.transition is not None
            self.steps += 1
            action = self.asked.action if isinstance(self.asked, Act) else self.asked.actions[-1]
            self.actions.append(action)
            self.transcript += [action, answer.observation.text or "", str(answer.transition)]
            if answer.transition.terminated or answer.transition.truncated:
                self.seed, self.actions = self.seed + SLOTS, []
                self.asked = Reset(self.seed)
                return self.asked
        choice = (7 * self.steps + 3 * self.slot) % len(answer.legal_actions)
        self.asked = Act(answer.legal_actions[choice])
        return self.asked


SLOTS = 8


@pytest.mark.slow
def test_killed_workers_lose_nothing() -> None:
    """10,000 steps in four processes, one of which is killed every 1,000: each of the eight
    slots is told the same as in one process that nobody disturbs."""
    factory = partial(make_environment, "ALFWorld", limit_steps=40)
    disturbed = [_Player(slot) for slot in range(SLOTS)]
    killed = 0
    with SubprocessRunner(factory, SLOTS, workers=4) as runner:
        for player in disturbed:
            runner.send(player.slot, player.asked)
        while (steps := sum(player.steps for player in disturbed)) < 10_000:
            if steps >= 1_000 * (killed + 1):
                victim = runner.process_ids[killed % 4]
                assert victim is not None
                os.kill(victim, signal.SIGKILL)
                killed += 1
            for answer in runner.receive():
                player = disturbed[answer.slot]
                runner.send(answer.slot, player.next(answer))
    assert killed == 9
    assert 1 <= sum(player.retries for player in disturbed) <= 9
    with InProcessRunner(factory, 1) as runner:
        for player in disturbed:
            alone = _Player(player.slot)
            runner.send(0, alone.asked)
            while alone.steps < player.steps:
                (answer,) = runner.receive()
                command = alone.next(answer)
                if alone.steps < player.steps:
                    runner.send(0, command)
            assert alone.transcript == player.transcript
