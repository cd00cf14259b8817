"""What an answer's distance from the start costs, by hand; and what the settings refuse."""

from dataclasses import replace

import pytest

from forethought.config import PPOConfig
from forethought.errors import ConfigError
from forethought.training.anchor import penalised
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
    charged = penalised(trajectories, reference, 0.5)
    rewards = [[step.reward for step in one.steps] for one in charged]
    assert rewards == [pytest.approx([0.0, 0.0]), pytest.approx([-0.75])]
    # The records stay as they are.
    assert [step.reward for step in trajectories[0].steps] == [1.0, 0.0]


@pytest.mark.parametrize("coefficient", [-0.1, float("inf"), float("nan")])
def test_refused(coefficient: float) -> None:
    with pytest.raises(ConfigError, match=r"kl_coefficient is .* — expected 0 or more"):
        replace(PPOConfig(), kl_coefficient=coefficient)
