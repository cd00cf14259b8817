"""`forethought envs` of any id of Gymnasium's: described as the shipped environments are."""

import json
import re

import pytest

from tests.unit.cli.terminal import Type

HOME = "gym:tests.unit.environments.gym.strange"


def test_an_id_of_gymnasiums_is_described(type_: Type) -> None:
    outcome = type_("envs gym:FrozenLake-v1")
    assert (outcome.code, outcome.err) == (0, "")
    first, *lines = outcome.out.splitlines()
    assert first.startswith("gym:FrozenLake-v1: Walk over the ice")
    rows = dict(line.strip().split(maxsplit=1) for line in lines)
    assert rows["sees"] == "text, an image, or both: Discrete(16)"
    assert rows["actions"] == "left down right up"
    assert rows["success"] == "it terminated, with a return above 0"
    assert rows["best"].startswith("74.4 %, exact: ")
    assert rows["expert"] == "yes"
    assert rows["limit_steps=100"]
    assert rows["map_name=4x4"] == "a keyword of its constructor: what its documentation says"


def test_an_id_that_is_known_by_its_spaces_alone(type_: Type) -> None:
    outcome = type_(f"envs {HOME}:Corridor-v0 --json")
    (told,) = json.loads(outcome.out)
    assert told["name"] == f"{HOME}:Corridor-v0"
    assert told["summary"] == "go right"
    assert told["spaces"]["observation"] == "text, an image, or both: cell, mission, wind"
    assert told["spaces"]["actions"] == "1 2"
    assert told["ceiling"] is None
    assert re.search(r"\n  expert +none: train ppo", type_(f"envs {HOME}:Corridor-v0").out)


def test_an_id_that_no_words_are_known_for_is_seen_in_images(type_: Type) -> None:
    outcome = type_(f"envs {HOME}:Screen-v0")
    assert "images alone (view=image): Box(0, 255, (9, 9, 3), uint8)" in outcome.out
    assert "0 1 2 … 24 (25 in all)" in outcome.out
    assert "view=image " in outcome.out


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("gym:NoSuch-v1", "gym:NoSuch-v1: Environment `NoSuch` doesn't exist"),
        (f"{HOME}:Away-v0", f"{HOME}:Away-v0: reset(seed=0) raised RuntimeError: away"),
        (f"{HOME}:Leaver-v0", f"{HOME}:Leaver-v0: SystemExit"),
    ],
)
def test_an_id_that_cannot_be_described_is_one_line(type_: Type, name: str, line: str) -> None:
    outcome = type_(f"envs {name}")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {line}")
    assert outcome.err.count("\n") == 1


def test_the_list_and_the_refusal_mention_gymnasiums_ids(type_: Type) -> None:
    assert type_("envs").out.splitlines()[-1] == (
        "any id of Gymnasium's works as gym:ID: forethought envs gym:FrozenLake-v1"
    )
    assert type_("envs FrozenLake-v1").err.endswith("; and any id of Gymnasium's as gym:ID\n")
