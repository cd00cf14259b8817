"""ALFWorld keeps Gymnasium's contract and ours, and plays in worker processes."""

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from forethought.environments import make_environment
from forethought.environments.check import check_environment
from forethought.environments.vector import Act, Reply, Restart, SubprocessRunner


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


def test_gymnasiums() -> None:
    environment = gymnasium.make("forethought/ALFWorld-v0", render_mode="rgb_array")
    check_env(environment.unwrapped)
    environment.close()


def test_processes_say_the_same() -> None:
    """Whatever the order of sets in a process is."""
    factory = partial(make_environment, "ALFWorld")
    here = make_environment("ALFWorld")
    here.restart(0)
    with SubprocessRunner(factory, 2, workers=2) as runner:
        for slot in range(2):
            runner.send(slot, Restart(0))
        _two(runner)
        for _ in range(5):
            action = here.expert().action
            here.act(action)
            for slot in range(2):
                runner.send(slot, Act(action))
            for reply in _two(runner):
                assert reply.observation.text == here.observation().text
                assert reply.observation.state_key == here.observation().state_key
                assert reply.legal_actions == here.legal_actions()


def _two(runner: SubprocessRunner) -> list[Reply]:
    replies: list[Reply] = []
    while len(replies) < 2:
        for answer in runner.receive():
            assert isinstance(answer, Reply), answer
            replies.append(answer)
    return replies
