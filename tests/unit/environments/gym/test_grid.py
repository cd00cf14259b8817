"""MiniGrid and BabyAI in words, and their experts."""

import json
from typing import Any

import numpy as np
import pytest

from forethought.environments import make_environment
from forethought.environments.contract import WithExpert
from forethought.environments.gym.grid import GridKnowledge
from tests.skips import with_minigrid

pytestmark = with_minigrid


def test_what_is_seen_is_told_from_where_one_stands() -> None:
    """A view made by hand: 7 × 7, the agent at the bottom in the middle, looking up."""
    room: Any = make_environment("gym:MiniGrid-Empty-5x5-v0")
    knowledge: GridKnowledge = room._knowledge
    view = np.zeros((7, 7, 3), np.uint8)
    view[..., 0] = 1  # empty
    view[3, 3] = (4, 4, 2)  # a locked yellow door three ahead
    view[1, 6] = (5, 0, 0)  # a red key two to the left
    view[4, 6] = (2, 5, 0)  # a wall at the right hand
    seen = knowledge.seen({"image": view})
    assert seen == ("red key left 2; locked yellow door ahead 3. free: ahead 2, left 1, right 0")


@pytest.mark.parametrize(
    "name",
    [
        "gym:minigrid:MiniGrid-DoorKey-5x5-v0",
        "gym:MiniGrid-LavaCrossingS9N1-v0",
        "gym:BabyAI-GoToRedBall-v0",
        "gym:BabyAI-PickupLoc-v0",
        "gym:BabyAI-OpenDoor-v0",
    ],
)
def test_experts_solve_every_level_and_say_why(name: str) -> None:
    environment = make_environment(name)
    assert isinstance(environment, WithExpert)
    for seed in range(10):
        mission = environment.reset(seed).goal
        assert mission
        over = False
        while not over:
            said = environment.expert()
            fields = {key: json.loads(value) for key, value in said.fields}
            assert list(fields) == ["seen", "thoughts"]
            assert fields["thoughts"].endswith(f"so I do {said.action}")
            _, terminated, truncated = environment.step(said.action)
            over = terminated or truncated
        assert environment.success(), f"{name}, seed {seed}"


def test_the_bot_survives_an_agent_that_does_anything() -> None:
    level = make_environment("gym:BabyAI-Pickup-v0", limit_steps=60)
    assert isinstance(level, WithExpert)
    randomness = np.random.default_rng(0)
    assert level.actions is not None
    for seed in range(3):
        level.reset(seed)
        over = False
        while not over:
            assert level.expert().action in level.actions
            _, terminated, truncated = level.step(level.actions[randomness.integers(7)])
            over = terminated or truncated


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """MiniGrid prints which objects it could not place."""
    level = make_environment("gym:BabyAI-PickupLoc-v0")
    for seed in range(20):
        level.reset(seed)
    assert capsys.readouterr().out == ""
