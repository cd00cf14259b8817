"""`--dry-run`: what an optimizer step is made of, and what is said of time."""

import re

import pytest
import torch

from tests.unit.cli.terminal import Type

EACH_ROW_ALONE = "--compute.micro-batch-tokens 64 --compute.threads 1 --batch-size 4 --dry-run"
"""Rows are longer than half of that: as many forward and backward passes as there are rows."""
SECONDS = r"([\d.e-]+) s"


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        pytest.param("train sft", 4, id="responses"),
        pytest.param("train dpo", 8, id="both responses of a pair"),
        pytest.param(
            "train dpo --rollout.num-envs 6 --group-size 6 --rollout.steps-per-iteration 6",
            6,
            id="no more responses than were played",
        ),
    ],
)
def test_rows_of_a_step(type_: Type, words: str, rows: int) -> None:
    outcome = type_(f"{words} --model tiny --environment.id Bandit {EACH_ROW_ALONE}")
    assert f", of {rows} forward and backward passes" in outcome.out


@pytest.mark.parametrize(
    ("environment", "rows"),
    [
        pytest.param("Wordle --prompt.format action_only", range(4, 5), id="a conversation is one"),
        pytest.param("Blackjack --environment.image-size 64", range(5, 40), id="each step is one"),
    ],
)
def test_rows_of_an_offline_step(type_: Type, environment: str, rows: range) -> None:
    words = f"--environment.id {environment}"
    assert type_(f"collect --policy data {words} --episodes 12 --output data").code == 0
    outcome = type_(f"train ilql --model tiny --data data {words} {EACH_ROW_ALONE}")
    found = re.search(r", of (\d+) forward and backward passes", outcome.out)
    assert found is not None
    assert int(found[1]) in rows
    step = re.search(
        rf"step takes about {SECONDS} here, one that learns values at least {SECONDS}", outcome.err
    )
    assert step is not None
    assert float(step[2]) > float(step[1])


def test_an_iteration_of_dpo(type_: Type) -> None:
    """Its parts are writing, and scoring and learning; stored pairs have no iteration to play."""
    err = type_(f"train dpo --model tiny --environment.id Bandit {EACH_ROW_ALONE}").err
    parts = re.findall(rf"{SECONDS} (?:and the|to write|to score)", err)
    whole, writing, learning = map(float, parts)
    assert whole == pytest.approx(writing + learning, rel=0.1)  # Two digits are printed.


def test_time_is_that_of_training_s_threads(type_: Type) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        type_(f"train sft --model tiny --environment.id Bandit {EACH_ROW_ALONE}")
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
