"""Every shipped environment keeps Gymnasium's contract and ours, under every option."""

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from forethought.environments import find_environment, list_environments, make_environment
from forethought.environments.check import check_environment
from forethought.environments.chess.engine import PACKAGE, find_stockfish
from tests.skips import needs, with_minigrid
from tests.unit.environments.manipulation.renderer import draws

SMALL_CHESS: dict[str, Any] = {"opponent": "builtin", "ply_limit": 6}
OTHER_CHESS: dict[str, Any] = {
    "color": "black",
    "notation": "san",
    "board": "squares",
    "legal_moves": True,
    "on_illegal": "random",
}

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("NumberLine", {}),
    ("NumberLine", {"image_size": 64, "max_position": 1}),
    ("NumberLine", {"image_size": 48, "max_position": 99}),
    ("NumberLine", {"image_size": 64, "rules": "reference"}),
    ("NumberLine", {"image_size": 48, "rules": "reference", "expert": "random_choice"}),
    ("NumberLine", {"image_size": 48, "rules": "reference_2d947f4", "max_position": 1}),
    ("NumberLine", {"image_size": 48, "rules": "reference_2d947f4"}),
    ("EZPoints", {}),
    ("EZPoints", {"image_size": 48}),
    ("EZPoints", {"image_size": 64, "rules": "reference"}),
    ("EZPoints", {"image_size": 48, "expert": "random_choice"}),
    ("Points24", {}),
    ("Points24", {"image_size": 64, "faces_as_ten": False}),
    ("Points24", {"image_size": 64, "deals": "unseen"}),
    ("Blackjack", {}),
    ("Blackjack", {"image_size": 64, "natural": True}),
    ("Blackjack", {"image_size": 48, "rules": "reference"}),
    ("Blackjack", {"image_size": 48, "expert": "random_choice"}),
    ("Bandit", {}),
    ("Bandit", {"arms": 26}),
    ("Bandit", {"expert": "random_choice"}),
    ("Chess", SMALL_CHESS),
    ("Chess", {**SMALL_CHESS, **OTHER_CHESS}),
    ("Chess", {"start": "kqk", "board": "pieces", "notation": "san", "ply_limit": 20}),
    ("Chess", {"start": "krk", "board": "squares", "legal_moves": True, "ply_limit": 20}),
    ("Wordle", {}),
    ("Wordle", {"words": "large", "rules": "reference"}),
    ("TwentyQuestions", {}),
    ("WebShop", {}),
    ("WebShop", {"view": "text_rich", "per_page": 3, "limit_steps": 5}),
    ("Sokoban", {}),
    ("Sokoban", {"view": "both", "image_size": 64, "boxes": 2, "size": 7, "limit_steps": 40}),
    ("Sokoban", {"view": "image", "image_size": 48}),
]
ROBOTS: list[tuple[str, dict[str, Any]]] = [
    ("Manipulation", {"image_size": 48, "limit_steps": 10}),
    (
        "Manipulation",
        {"task": "place_near", "image_size": 64, "randomize": True, "limit_steps": 20},
    ),
    ("Manipulation", {"proprioception": False, "image_size": 48, "limit_steps": 10}),
    ("Manipulation", {"view": "state", "limit_steps": 10}),
]

CARDS = ("NumberLine", "EZPoints", "Points24", "Blackjack")

BY_ID: list[tuple[str, dict[str, Any]]] = [
    ("gym:FrozenLake-v1", {}),
    ("gym:FrozenLake-v1", {"is_slippery": False, "map_name": "8x8"}),
    ("gym:Taxi-v4", {}),
    ("gym:CliffWalking-v1", {}),
    ("gym:CartPole-v1", {"actions": "left,right"}),
    ("gym:Blackjack-v1", {}),
]
GRIDS: list[tuple[str, dict[str, Any]]] = [
    ("gym:minigrid:MiniGrid-DoorKey-5x5-v0", {"limit_steps": 40}),
    ("gym:MiniGrid-DoorKey-5x5-v0", {"view": "both", "image_size": 64, "limit_steps": 20}),
    ("gym:BabyAI-GoToRedBall-v0", {"limit_steps": 40}),
    ("gym:BabyAI-PickupLoc-v0", {"limit_steps": 40}),
]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_ours(name: str, options: dict[str, Any]) -> None:
    check_environment(partial(make_environment, name, **options), episodes=15)


@pytest.mark.parametrize(("name", "options"), BY_ID)
def test_ours_by_gymnasiums_id(name: str, options: dict[str, Any]) -> None:
    check_environment(partial(make_environment, name, **options), episodes=4)


@with_minigrid
@pytest.mark.parametrize(("name", "options"), GRIDS)
def test_ours_by_minigrids_id(name: str, options: dict[str, Any]) -> None:
    check_environment(partial(make_environment, name, **options), episodes=3)


@draws
@pytest.mark.parametrize(("name", "options"), ROBOTS)
def test_ours_robot(name: str, options: dict[str, Any]) -> None:
    check_environment(partial(make_environment, name, **options), episodes=4)


@draws
@pytest.mark.parametrize(("name", "options"), ROBOTS)
def test_gymnasiums_robot(name: str, options: dict[str, Any]) -> None:
    environment = gymnasium.make(find_environment(name).id, render_mode="rgb_array", **options)
    check_env(environment.unwrapped)
    environment.close()


@pytest.mark.slow
@pytest.mark.parametrize("faces_as_ten", [True, False])
def test_ours_points24_by_the_reference(faces_as_ten: bool) -> None:
    options = {"rules": "reference", "faces_as_ten": faces_as_ten, "image_size": 64}
    check_environment(partial(make_environment, "Points24", **options), episodes=30)


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_gymnasiums(name: str, options: dict[str, Any]) -> None:
    if "image_size" in options or name in CARDS:
        options = {**options, "render_mode": "rgb_array"}
    environment = gymnasium.make(find_environment(name).id, **options)
    check_env(environment.unwrapped)
    environment.close()


PARTICULAR = ("Chess", "ALFWorld", "Manipulation")
"""They need a program, games or a renderer."""
NUMBERED = [spec for spec in list_environments() if spec.name not in PARTICULAR]


@pytest.mark.skipif(find_stockfish() is None, reason=needs("Stockfish", PACKAGE))
def test_ours_chess_against_stockfish() -> None:
    check_environment(partial(make_environment, "Chess", ply_limit=8), episodes=5)


@pytest.mark.parametrize("spec", NUMBERED, ids=lambda spec: spec.name)
def test_both_sides_play_the_same_game(spec: Any) -> None:
    """Gymnasium's view adds nothing and leaves nothing out."""
    words = make_environment(spec.name)
    numbers = gymnasium.make(spec.id)
    for seed in range(20):
        observation = words.reset(seed)
        actions = words.actions or words.legal_actions()
        array, info = numbers.reset(seed=seed)
        assert info["goal"] == observation.goal
        ended = False
        for index in np.random.default_rng(seed).integers(len(actions), size=100):
            image = array["image"] if isinstance(array, dict) else array
            if observation.image is not None:
                assert np.array_equal(image, observation.image)
            if observation.text is not None:
                assert (array["text"] if isinstance(array, dict) else array) == observation.text
            if ended:
                break
            transition = words.step(actions[index])
            observation = words.observation()
            array, *rest, info = numbers.step(index if words.actions else actions[index])
            assert tuple(rest) == transition
            assert info["success"] is words.success()
            ended = transition.terminated or transition.truncated
        assert ended
    numbers.close()


def test_an_unseeded_reset_goes_on_with_the_generator() -> None:
    """As Gymnasium asks: only the first reset of a run is seeded."""
    environment = gymnasium.make("forethought/Points24-v0", image_size=48)
    runs: list[list[bytes]] = []
    for _ in range(2):
        first, _ = environment.reset(seed=1)
        second, _ = environment.reset()
        runs.append([first["image"].tobytes(), second["image"].tobytes()])
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[0][1]
