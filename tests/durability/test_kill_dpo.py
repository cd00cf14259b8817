"""`kill -9`, then `--resume`, of preference optimization: its reference and its pairs, too."""

from pathlib import Path

import pytest

from tests.durability.comparison import assert_same_run, iterations_with_pairs
from tests.durability.conftest import CHOOSING, DPO, DPO_TRAJECTORY, trained
from tests.durability.kills import kill_and_resume, moments

pytestmark = pytest.mark.slow

ITERATIONS = 12


@pytest.fixture(scope="module")
def dpo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is typed, less the output folder."""
    start = trained(CHOOSING, tmp_path_factory.mktemp("durability") / "sft")
    return f"{DPO} --model {start}"


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(DPO_TRAJECTORY, id="trajectory: a reference that moves and one that stays"),
        pytest.param("--pairing matched --group-size 4", id="matched"),
        pytest.param("--pairing branch --branches 3 --ref-model-sync-every 3", id="branch"),
    ],
)
def test_dpo_killed_at_ten_random_moments(dpo: str, how: str, tmp_path: Path) -> None:
    words = f"{dpo} {how}"
    whole = trained(words, tmp_path / "whole")
    rounds = iterations_with_pairs(whole)
    assert rounds >= ITERATIONS // 2
    kill_and_resume(words, tmp_path / "run", moments(5, 10, rounds))
    assert_same_run(tmp_path / "run", whole)
