"""What an answer's distance from the start costs, by hand; who is asked for it, and how often;
and what the settings refuse."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from forethought.algorithms.ppo import train as ppo
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Sample, penalized
from forethought.errors import ConfigError
from tests.unit.algorithms.conftest import crossing_ppo
from tests.unit.targets.builders import Did, trajectory


def test_every_step_is_charged_for_its_own_answer() -> None:
    """c = 0.5; distances: -3 - -5 = 2 nats, 0, and -1 - -0.5 = -0.5, which is paid back."""
    trajectories = [
        trajectory(
            Did("+", reward=1.0, logprobs=(-1.0, -2.0)), Did("+", reward=0.0, logprobs=(-4.0,))
        ),
        trajectory(Did("+", reward=-1.0, logprobs=(-1.0,))),
    ]
    reference = [[-2.0, -3.0], [-4.0], [-0.5]]
    charged = penalized(trajectories, reference, 0.5)
    rewards = [[step.reward for step in one.steps] for one in charged]
    assert rewards == [pytest.approx([0.0, 0.0]), pytest.approx([-0.75])]
    # The records stay as they are.
    assert [step.reward for step in trajectories[0].steps] == [1.0, 0.0]


@pytest.mark.parametrize("coefficient", [-0.1, float("inf"), float("nan")])
def test_refused(coefficient: float) -> None:
    with pytest.raises(ConfigError, match=r"kl_coefficient is .* — expected 0 or more"):
        replace(PPOConfig(), kl_coefficient=coefficient)


@pytest.mark.parametrize("use", ["loss", "reward"])
def test_the_reference_is_asked_once_an_iteration_and_its_answers_reach_the_samples(
    use: Literal["loss", "reward"],
    small_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two iterations of eight steps; a made-up reference that knows every token by its place."""
    asked: list[int] = []
    charged: list[float] = []
    sound_advantages, sound_improve = ppo.compute_advantages, ppo.improve

    def known(samples: Sequence[Sample], *_: object) -> list[list[float]]:
        asked.append(len(samples))
        return [
            [-float(number + place) for place in range(len(sample.old_logprobs))]
            for number, sample in enumerate(samples)
        ]

    def computed(collected: Any, *others: Any) -> list[Sample]:
        steps = [step for one in collected.trajectories for step in one.steps]
        charged.append(float(np.mean([step.reward for step in steps])))
        return sound_advantages(collected, *others)

    def improve(samples: Sequence[Sample], *others: Any) -> Any:
        assert [sample.reference_logprobs for sample in samples] == known(samples)
        asked.pop()
        return sound_improve(samples, *others)

    monkeypatch.setattr(ppo, "reference_logprobs", known)
    monkeypatch.setattr(ppo, "compute_advantages", computed)
    monkeypatch.setattr(ppo, "improve", improve)
    config = crossing_ppo(small_model, tmp_path / "run", kl_coefficient=1.0, kl_use=use)
    ppo.train_ppo(config)
    assert asked == [8, 8]
    # Answers that the reference finds very unlikely cost much.
    assert [reward < -10.0 for reward in charged] == [use == "reward"] * 2
