"""Micro-batches change nothing, however tokens are weighed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forethought.algorithms.ppo import train as loop
from forethought.algorithms.ppo.samples import Sample
from tests.contract.architectures.conftest import ReadCheckpoint
from tests.contract.architectures.runs import metrics_of, ppo

ONE_ROW, ONE_BATCH = 64, 8192
"""Tokens of a micro-batch: so few that each row is one of its own, and all at once."""


def shortened(sample: Sample, length: int) -> Sample:
    """The beginning of an answer, which was as likely before its end was written."""
    example = sample.example._replace(completion_ids=sample.example.completion_ids[:length])
    return sample._replace(
        example=example,
        is_thought=sample.is_thought[:length],
        old_logprobs=sample.old_logprobs[:length],
        reference_logprobs=sample.reference_logprobs[:length],
        importance=sample.importance[:length],
    )


@pytest.fixture
def answers_of_many_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained model writes to the limit: answers are cut to 1, 2, 3, … tokens."""
    sound: Callable[..., list[Sample]] = loop.compute_advantages

    def computed(*given: Any) -> list[Sample]:
        return [shortened(sample, 1 + i) for i, sample in enumerate(sound(*given))]

    monkeypatch.setattr(loop, "compute_advantages", computed)


@pytest.mark.usefixtures("answers_of_many_lengths")
def test_micro_batches_change_nothing(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    """Nor do they make one aggregation of the other."""
    norms: list[float] = []
    for aggregation in ("token_mean", "sequence_mean", "sequence_sum"):
        results: list[dict[str, float]] = []
        for tokens in (ONE_ROW, ONE_BATCH):
            config = ppo(
                checkpoint_of("llama"),
                tmp_path / f"{aggregation}_{tokens}",
                ratio="token",
                loss_aggregation=aggregation,
                value_coefficient=0.0,
                compute={"micro_batch_tokens": tokens},
            )
            results += metrics_of(loop.train_ppo(config, existing="overwrite"))
        cut, whole = results
        assert cut == pytest.approx(whole, rel=1e-4, abs=1e-6, nan_ok=True)
        norms.append(whole["gradient_norm"])
    of_tokens, of_means, of_sums = norms
    assert of_means != pytest.approx(of_tokens, rel=0.01)
    assert of_sums == pytest.approx(of_tokens * (1 + 8) / 2)  # times the mean length
