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


HEX = "0x" + "f" * 5000
"""Python reads it, and cannot write it in decimal digits."""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("seed: " + "[" * 3000 + "]" * 3000, "is nested too deep", id="lists"),
        pytest.param("{" * 3000, "is nested too deep", id="mappings"),
        pytest.param("seed: " + "9" * 5000, "is not YAML: Exceeds the limit", id="digits"),
        pytest.param(f"seed: {HEX}", "seed is a number of thousands of digits", id="hex"),
        pytest.param(
            f"optimizer: {{learning_rate: {HEX}}}",
            "optimizer.learning_rate is a number of thousands of digits — expected a finite",
            id="hex for a fraction",
        ),
        pytest.param(f"config_version: {HEX}", "config_version is a number of", id="version"),
        pytest.param("seed: .inf", "seed is inf — expected a whole number", id="infinite"),
        pytest.param(f"seed: {2**64}", f"seed is {2**64} — expected a whole", id="64 bits"),
        *(
            pytest.param(
                f"optimizer: {{learning_rate: {text}}}",
                f"optimizer.learning_rate is {said} — expected a finite number",
                id=f"a fraction: {text}",
            )
            for text, said in ((".inf", "inf"), (".nan", "nan"), ("1e999", "'1e999'"))
        ),
        pytest.param("seed: 2001-99-99", "is not YAML: month must be in", id="date"),
        pytest.param('seed: !!timestamp "x"', "is not YAML: ", id="no date"),
        pytest.param('seed: !!int ""', "is not YAML: ", id="no number"),
        pytest.param('seed: !!bool "x"', "is not YAML: ", id="no truth value"),
        pytest.param("algorithm: [sft]", "algorithm is ['sft'] — expected", id="algorithm"),
        pytest.param("seed: &a {x: *a}", "seed is {'x': {'x': ", id="a value in itself"),
        pytest.param(f"seed: {'a' * 100_000}", "seed is 'aaaa", id="a long text"),
        pytest.param(f"{'a' * 100_000}: 1", "is not YAML: ", id="a long name"),
        pytest.param('"\\e[31m": 1', "unknown field \\x1b[31m — known: ", id="escapes"),
    ],
)
def test_a_hostile_file_is_one_short_line(type_: Type, text: str, line: str) -> None:
    FILE.write_text(text, encoding="utf-8")
    outcome = type_(COMMAND)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: my.yaml: {line}")
    assert outcome.err.count("\n") == 1
    assert len(outcome.err) < 500
