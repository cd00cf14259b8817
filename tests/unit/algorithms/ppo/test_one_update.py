"""With one update between two collections, its own forward pass takes the place of the scoring
pass: nothing else changes, and responses of other weights are refused as before."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from forethought.algorithms.ppo import train as ppo
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Sample
from forethought.configs.parts import ComputeConfig
from forethought.errors import OffPolicyError
from tests.contract.architectures.conftest import fresh_accelerate
from tests.contract.architectures.runs import metrics_of
from tests.durability.comparison import largest_difference
from tests.unit.algorithms.conftest import crossing_ppo

__all__ = ["fresh_accelerate"]  # a fixture that every test uses


def count_scorings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counted: list[int] = []
    sound = ppo.recompute_logprobs

    def recompute(samples: Sequence[Sample], *others: Any) -> Any:
        counted.append(len(samples))
        return sound(samples, *others)

    monkeypatch.setattr(ppo, "recompute_logprobs", recompute)
    return counted


def change_samples(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[int, Sample], Sample]
) -> None:
    sound = ppo.compute_advantages

    def changed(*arguments: Any) -> list[Sample]:
        return [change(number, sample) for number, sample in enumerate(sound(*arguments))]

    monkeypatch.setattr(ppo, "compute_advantages", changed)


CRITIC: dict[str, Any] = {}
ALONE = {"advantage": "rloo", "group_size": 2}


@pytest.mark.parametrize("ratio", ["step", "token"])
@pytest.mark.parametrize("others", [CRITIC, ALONE], ids=["critic", "no critic"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_is_learned_stays(
    others: dict[str, Any],
    ratio: Literal["step", "token"],
    precision: Literal["fp32", "bf16"],
    small_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model succeeds nowhere: advantages and returns are made up."""
    change_samples(
        monkeypatch,
        lambda number, sample: sample._replace(
            advantage=(-1.0) ** number, value_target=float(number)
        ),
    )
    counted = count_scorings(monkeypatch)
    others = others | {"ratio": ratio, "compute": ComputeConfig(threads=1, precision=precision)}
    once = ppo.train_ppo(crossing_ppo(small_model, tmp_path / "once", **others))
    assert counted == []
    monkeypatch.setattr(PPOConfig, "scores_in_update", False)
    twice = ppo.train_ppo(crossing_ppo(small_model, tmp_path / "twice", **others))
    assert sum(counted) >= 16  # eight steps or more in each of two iterations
    for one, other in zip(metrics_of(once), metrics_of(twice), strict=True):
        assert one == pytest.approx(other, abs=1e-4, nan_ok=True)
        assert one["gradient_norm"] > 0
        assert one["approximate_kl"] == 0.0  # the ratio is exactly 1
        assert one.get("value_clip_fraction", 0.0) == 0.0  # and so are the values
        assert precision == "fp32" or one["max_ratio_error"] > 0.0
    assert largest_difference(once, twice) < 1e-6


@pytest.mark.parametrize("batch_size", [8, 4], ids=["one update", "two updates"])
def test_responses_of_other_weights_are_refused(
    batch_size: int, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rollout says of every token that it is a hundredth of a nat likelier than it is."""
    change_samples(
        monkeypatch,
        lambda _, sample: sample._replace(
            old_logprobs=[logprob + 0.01 for logprob in sample.old_logprobs]
        ),
    )
    run = tmp_path / "run"
    with pytest.raises(OffPolicyError, match=r"a ratio is off 1 by 0\.0"):
        ppo.train_ppo(crossing_ppo(small_model, run, batch_size=batch_size))
    assert not (run / "metrics.jsonl").read_text()
    assert not list((run / "checkpoints").iterdir())


def test_only_where_nothing_else_asks_for_the_pass() -> None:
    config = PPOConfig(total_steps=512, batch_size=512, epochs=1)
    config = replace(config, rollout=replace(config.rollout, steps_per_iteration=512))
    assert config.scores_in_update
    assert not replace(config, epochs=2).scores_in_update
    assert not replace(config, batch_size=256).scores_in_update
    engine = replace(config.generation, engine=("http://127.0.0.1:1",))
    assert not replace(config, generation=engine).scores_in_update
