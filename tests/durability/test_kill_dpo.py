"""`kill -9`, then `--resume`, of preference optimization: its reference and its pairs, too."""

from pathlib import Path

import pytest

from forethought.runs.metrics import read_metrics
from tests.durability.comparison import assert_same_run
from tests.durability.conftest import trained
from tests.durability.kills import kill_and_resume, moments

pytestmark = pytest.mark.slow

ITERATIONS = 12


@pytest.fixture(scope="module")
def dpo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is typed, less the output folder: twelve iterations from a model that answers in the
    right form and chooses at random, so that every iteration has something to prefer."""
    start = trained(
        "train sft --environment.id Bandit --environment.options expert=random_choice "
        "--expert-steps 1600 --batch-size 16 --optimizer.learning-rate 2e-3 "
        "--optimizer.schedule constant --compute.threads 1",
        tmp_path_factory.mktemp("durability") / "sft",
    )
    return (
        f"train dpo --model {start} --environment.id Bandit --total-steps 384 "
        "--rollout.num-envs 16 "
        "--rollout.steps-per-iteration 32 --rollout.temperature 1.0 --rollout.max-new-tokens 24 "
        "--batch-size 8 --epochs 1 --checkpoint-every 2 --compute.threads 1 "
        "--optimizer.learning-rate 3e-4"
    )


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(
            "--pairing trajectory --loss-type sigmoid --ref-model-sync-every 3 "
            "--consistency-reference start --consistency-sides both",
            id="trajectory: a reference that moves and one that stays",
        ),
        pytest.param("--pairing matched --group-size 4", id="matched"),
        pytest.param("--pairing branch --branches 3 --ref-model-sync-every 3", id="branch"),
    ],
)
def test_dpo_killed_at_ten_random_moments(dpo: str, how: str, tmp_path: Path) -> None:
    words = f"{dpo} {how}"
    whole = trained(words, tmp_path / "whole")
    log = read_metrics(whole / "metrics.jsonl")
    used, norms = (log.column(name).values for name in ("pairs_used", "gradient_norm"))
    assert len(used) >= ITERATIONS // 2
    assert all(used > 0), "an iteration that trains nothing proves nothing"
    assert all(norms > 0)
    kill_and_resume(words, tmp_path / "run", moments(5, 10, len(used)))
    assert_same_run(tmp_path / "run", whole)
    pairs = [
        {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}
        for folder in (tmp_path / "run" / "pairs", whole / "pairs")
    ]
    assert pairs[0] == pairs[1]
    assert any(pairs[0].values())
