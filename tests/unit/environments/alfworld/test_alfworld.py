"""The environment: which game a seed stands for, what is paid, what is shown."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forethought.environments import make_environment
from forethought.environments.alfworld.alfworld import (
    EVALUATION_SEEDS,
    ALFWorld,
    Match,
    SplitOption,
    View,
)
from forethought.environments.alfworld.package import TaskType
from forethought.environments.gymnasium_view import GymnasiumView
from forethought.errors import ConfigError
from forethought.prompts.responses import parse_response
from forethought.rollouts.scripted import written
from forethought.rollouts.seeding import Split, episode_seed

LABELS = ["Look", "Pick", "Clean", "Cool", "Heat", "Pick2"]
"""In the order of the folders' names."""


@pytest.fixture
def environment(games: Path) -> ALFWorld:
    return ALFWorld(games=str(games))


def play(environment: ALFWorld, seed: int) -> list[float]:
    environment.reset(seed)
    rewards: list[float] = []
    while not environment.success():
        rewards.append(environment.step(environment.expert().action).reward)
    return rewards


def test_seeds_go_through_the_games(environment: ALFWorld) -> None:
    assert [environment.reset(seed).task_type for seed in range(7)] == [*LABELS, "Look"]


def test_held_out_seeds_play_held_out_games(environment: ALFWorld, games: Path) -> None:
    """The range is that of `rollouts/seeding.py`."""
    assert episode_seed(Split.EVALUATION, 0, 0) == EVALUATION_SEEDS
    for split in (Split.TRAINING, Split.DEMONSTRATION):
        assert max(episode_seed(split, run, 0) for run in range(99)) < EVALUATION_SEEDS
    held_out = environment.reset(EVALUATION_SEEDS).state_key
    training = environment.reset(EVALUATION_SEEDS - 6).state_key
    seeds = {"valid_seen": held_out, "train": training}
    for split, key in seeds.items():
        named = ALFWorld(games=str(games), split=split)  # pyright: ignore[reportArgumentType]
        assert named.reset(EVALUATION_SEEDS).state_key == key


@pytest.mark.parametrize("split", ["by_seed", "train", "valid_unseen"])
def test_held_out_episodes_are_all_different(games: Path, split: SplitOption) -> None:
    environment = ALFWorld(games=str(games), split=split)
    seeds = range(EVALUATION_SEEDS, EVALUATION_SEEDS + environment.held_out_episodes + 1)
    keys = [environment.reset(seed).state_key for seed in seeds]
    assert len(set(keys)) == environment.held_out_episodes == 6
    assert keys[-1] == keys[0]


def test_generated_games_are_counted_too() -> None:
    assert (ALFWorld().held_out_episodes, ALFWorld("train").held_out_episodes) == (200, 3000)


@pytest.mark.parametrize(
    ("kind", "total"),
    [(0, 52), (1, 51), (2, 53), (3, 52), (4, 53), (5, 52)],
)
def test_the_expert_gets_everything(environment: ALFWorld, kind: int, total: float) -> None:
    """50, and 1 for each condition: two for looking, one for picking, three for a state; but a
    mug lies in the fridge and is cool already; two for two."""
    assert sum(play(environment, kind)) == total
    metrics = dict(environment.metrics())
    assert metrics["progress"] == 1
    assert metrics["goal_reward"] == 50
    assert metrics["progress_reward"] == total - 50
    assert metrics["official"] == 0


def test_an_inadmissible_command_costs_and_changes_nothing(environment: ALFWorld) -> None:
    before = environment.reset(4)
    for _ in range(2):
        assert environment.step("go to shelf 12").reward == -1
    assert environment.step("fly").reward == -1
    after = environment.observation()
    assert after.text == "Nothing happens."
    assert after.admissible_actions == before.admissible_actions
    metrics = dict(environment.metrics())
    assert (metrics["inadmissible"], metrics["distinct_inadmissible"]) == (3, 2)


def test_matching(games: Path) -> None:
    """RL4VLM's code takes the first admissible command that the text contains; what the environment
    takes for a command is a valid answer, and recorded as that command."""
    texts = {"go to shelf 12": "go to shelf 1", " go to shelf 1\n": "go to shelf 1"}
    rules: dict[Match, list[bool]] = {"exact": [False, True], "reference": [True, True]}
    for match, accepted in rules.items():
        environment = ALFWorld(games=str(games), match=match)
        for text, is_accepted in zip(texts, accepted, strict=True):
            environment.reset(1)
            answer = written(json.dumps({"action": text}))
            parsed = parse_response(
                answer,
                environment.observation().admissible_actions,
                resolve_action=environment.resolve_action,
            )
            assert parsed.is_valid is is_accepted
            assert parsed.action == ("go to shelf 1" if is_accepted else text)
            assert (environment.step(text).reward == 0) is is_accepted


def test_limit(games: Path) -> None:
    environment = ALFWorld(games=str(games), limit_steps=2)
    environment.reset(0)
    assert not environment.step("look").truncated
    last = environment.step("look")
    assert last.truncated
    assert not last.terminated
    with pytest.raises(RuntimeError):
        environment.step("look")
    assert environment.legal_actions() == ()


def test_winning_at_the_limit_terminates(games: Path) -> None:
    steps = len(play(ALFWorld(games=str(games)), 1))
    environment = ALFWorld(games=str(games), limit_steps=steps)
    environment.reset(1)
    for _ in range(steps - 1):
        environment.step(environment.expert().action)
    last = environment.step(environment.expert().action)
    assert (last.terminated, last.truncated) == (True, False)


def test_a_snapshot_is_come_back_to(environment: ALFWorld, games: Path) -> None:
    environment.reset(5)
    for action in ("go to drawer 1", "dance", "open drawer 2"):
        environment.step(action)
    snapshot = environment.snapshot()
    here = environment.observation()
    environment.step("go to shelf 1")
    assert environment.restore(snapshot).state_key == here.state_key
    other = ALFWorld(games=str(games))
    assert other.restore(snapshot).state_key == here.state_key
    assert other.metrics() == environment.metrics()


def test_equal_states_have_equal_keys(environment: ALFWorld) -> None:
    """Two ways to the same place; not so where a drawer was opened on the way."""

    def key(*actions: str) -> str:
        environment.reset(1)
        for action in actions:
            environment.step(action)
        return environment.observation().state_key

    direct = key("go to shelf 1")
    assert key("go to fridge 1", "go to shelf 1") == direct
    assert key("go to drawer 1", "open drawer 1", "go to shelf 1") != direct
    environment.reset(4)
    environment.step("go to shelf 1")
    assert environment.observation().state_key != direct, "another game"


def test_the_goal_tells_nothing_that_is_hidden(environment: ALFWorld) -> None:
    observation = environment.reset(4)
    assert observation.goal == "put a hot mug in shelf"
    assert "mug 1" not in (observation.text or "")


@pytest.mark.parametrize(
    ("view", "has_text", "has_image"),
    [("text", True, False), ("image", False, True), ("both", True, True)],
)
def test_views(games: Path, view: View, has_text: bool, has_image: bool) -> None:
    observation = ALFWorld(games=str(games), view=view, image_size=64).reset(0)
    shown = observation.text is not None, observation.image is not None
    assert shown == (has_text, has_image)


def test_an_expert_that_scans_plays_the_same(games: Path) -> None:
    direct, scans = ALFWorld(games=str(games)), ALFWorld(games=str(games), expert="scan")
    for environment in (direct, scans):
        environment.reset(0)
    one, other = direct.expert(), scans.expert()
    assert one.action == other.action
    assert "left are" in other.fields[0][1]
    assert "left are" not in one.fields[0][1]


def test_gymnasiums_view_plays_the_same_game(games: Path) -> None:
    words, numbers = ALFWorld(games=str(games)), GymnasiumView(ALFWorld(games=str(games)))
    randomness = np.random.default_rng(0)
    for seed in range(6):
        observation = words.reset(seed)
        text, info = numbers.reset(seed=seed)
        assert (text, info["goal"]) == (observation.text, observation.goal)
        for _ in range(20):
            commands = words.legal_actions()
            command = commands[int(randomness.integers(len(commands)))]
            transition = words.step(command)
            text, *rest, info = numbers.step(command)
            assert tuple(rest) == transition
            assert text == words.observation().text
            assert info["success"] is words.success()
            assert info["admissible_actions"] == words.observation().admissible_actions
            if transition.terminated:
                break


@pytest.mark.parametrize(
    "options",
    [
        {"split": "test"},
        {"reward": "sparse"},
        {"match": "fuzzy"},
        {"view": "sound"},
        {"expert": "guess"},
        {"limit_steps": 0},
        {"labels": True, "image_size": 64},
        {"image_size": 20},
        {"games": ""},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        make_environment("ALFWorld", **options)


def test_every_kind_has_a_label() -> None:
    assert {kind.label for kind in TaskType} == set(LABELS)
