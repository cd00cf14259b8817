"""A settings file says each thing once; what it merges it may set anew."""

from pathlib import Path

import pytest
import yaml

from tests.unit.cli.terminal import Type

FILE = Path("my.yaml")
COMMAND = f"train sft --config {FILE} --dry-run"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("seed: 3\nepochs: 2\nseed: 4", "line 3: seed", id="at the top"),
        pytest.param("seed: 3\n'seed': 4", "line 2: seed", id="in quotes"),
        pytest.param("lora: {rank: 1, rank: 2}", "line 1: rank", id="in a group"),
        pytest.param("environment:\n  options: [{a: 1, a: 2}]", "line 2: a", id="in a list"),
        pytest.param(
            "lora: &a {rank: 1, rank: 2}\noptimizer: {<<: *a}", "line 1: rank", id="at an anchor"
        ),
    ],
)
def test_a_field_that_is_set_twice_is_refused(type_: Type, text: str, line: str) -> None:
    FILE.write_text(text, encoding="utf-8")
    outcome = type_(COMMAND)
    assert outcome == (2, "", f"error: my.yaml: {line} is set twice — keep one\n")


@pytest.mark.parametrize(
    "merged",
    [
        pytest.param("{<<: &a {learning_rate: 1e-4, warmup_steps: 5}, warmup_steps: 7}", id="one"),
        pytest.param("{<<: [{learning_rate: 1e-4}, {warmup_steps: 7}]}", id="a list"),
        pytest.param("{<<: {learning_rate: 1e-4}, <<: {warmup_steps: 7}}", id="one by one"),
    ],
)
def test_what_is_merged_is_not_set_twice(type_: Type, merged: str) -> None:
    FILE.write_text(f"environment: {{id: Bandit}}\noptimizer: {merged}\n", encoding="utf-8")
    outcome = type_(COMMAND)
    assert outcome.code == 0, outcome.err
    optimizer = yaml.safe_load(outcome.out)["optimizer"]
    assert (optimizer["learning_rate"], optimizer["warmup_steps"]) == (1e-4, 7)


def test_a_node_that_holds_itself_is_looked_at_once(type_: Type) -> None:
    FILE.write_text("environment: {options: &a [*a]}", encoding="utf-8")
    assert type_(COMMAND).code == 2
