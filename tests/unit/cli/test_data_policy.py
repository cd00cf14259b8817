"""`collect --policy data`: the player who makes an environment's offline data."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from forethought.rollouts.store import read_shards
from forethought.types import Trajectory
from tests.unit.cli.terminal import Type

WORDLE = "collect --environment.id Wordle --prompt.format action_only"


def collected(type_: Type, words: str, folder: str) -> list[Trajectory]:
    outcome = type_(f"{WORDLE} {words} --output {folder}")
    assert outcome.code == 0, outcome.err
    return list(read_shards(Path(folder)))


def moves(trajectories: list[Trajectory]) -> list[list[str]]:
    return [[step.action.action for step in trajectory.steps] for trajectory in trajectories]


def test_episodes_do_not_depend_on_the_file_that_they_are_in(type_: Type) -> None:
    """Each draws from a seed of its own; the same number plays the same game."""
    one = collected(type_, "--policy data --episodes 7", "one")
    three = collected(type_, "--policy data --episodes 7 --shard 3", "three")
    other = collected(type_, "--policy data --episodes 7 --seed 1", "other")
    assert moves(one) == moves(three) != moves(other)
    assert [trajectory.seed for trajectory in one] == [trajectory.seed for trajectory in three]
    assert all(trajectory.is_finished for trajectory in one)


def test_answers_are_in_the_form_that_the_next_prompt_repeats(type_: Type) -> None:
    for policy in ("data", "random", "expert"):
        for trajectory in collected(type_, f"--policy {policy} --episodes 4", policy):
            steps = trajectory.steps
            for before, after in pairwise(steps):
                said = [message.text for message in after.prompt.messages]
                told = [message.text for message in before.prompt.messages]
                assert said[: len(told) + 1] == [*told, before.completion.text]
                assert after.prompt.messages[len(told)].role == "assistant"
            assert all(step.action.is_valid for step in steps)


def test_the_skill_is_the_environments_or_ones_own(type_: Type) -> None:
    collected(type_, "--policy data --episodes 2", "usual")
    always = collected(type_, "--policy data:1 --episodes 40", "always")
    named = [
        json.loads((Path(folder) / "collection.json").read_text())["policy"]
        for folder in ("usual", "always")
    ]
    assert named == ["data:0.314", "data:1"]
    assert sum(trajectory.success for trajectory in always) >= 39
    outcome = type_(f"{WORDLE} --policy data:0.5 --output always")
    assert outcome.code == 2
    assert "holds another collection, with policy 'data:1'" in outcome.err


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("--policy data:good", "expected data or data:NUMBER"),
        ("--policy data:", "expected data or data:NUMBER"),
        ("--policy data:1.5", "skill is 1.5 — expected 0 (random) to 1"),
        ("--policy data:nan", "skill is nan — expected 0 (random) to 1"),
        ("--policy data --environment.id Bandit", "Bandit has none: expert or random"),
    ],
)
def test_refused(words: str, refusal: str, type_: Type) -> None:
    outcome = type_(f"{WORDLE} {words} --output refused")
    assert outcome.code == 2
    assert refusal in outcome.lines[-1]
    assert not Path("refused").exists()


def test_a_script_plays_in_this_process_and_takes_no_workers(type_: Type) -> None:
    outcome = type_(f"{WORDLE} --policy data --environment.workers 2 --output data")
    assert outcome.code == 2
    assert outcome.err == ("error: environment.workers is 2 — expected 0 with policy data\n")
