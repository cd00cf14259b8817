"""What an answer's distance from the start costs, by hand; and what the settings refuse."""

from dataclasses import replace

import pytest

from forethought.config import PPOConfig
from forethought.errors import ConfigError
from forethought.training.anchor import penalised
from forethought.types import (
    Completion,
    FinishReason,
    ParsedAction,
    Prompt,
    Span,
    Step,
    Trajectory,
)


def step(reward: float, logprobs: tuple[float, ...]) -> Step:
    ids = tuple(range(len(logprobs)))
    return Step(
        prompt=Prompt(messages=(), token_ids=(1,)),
        completion=Completion(ids, logprobs, ids, "+" * len(ids), FinishReason.STOP, 1.0),
        action=ParsedAction("+", True, None, thought_span=Span(0, 0), action_span=Span(0, 1)),
        reward=reward,
        terminated=False,
        truncated=False,
        value=None,
        policy_version=0,
        state_key="",
        duration_s=0.0,
    )


def episode(*steps: Step) -> Trajectory:
    return Trajectory(
        environment_id="bandit",
        seed=0,
        task_type="",
        first_step=0,
        steps=steps,
        bootstrap_value=None,
        success=True,
        measures=(),
    )


def test_every_step_is_charged_for_its_own_answer() -> None:
    """c = 0.5; distances: -3 - -5 = 2 nats, 0, and -1 - -0.5 = -0.5, which is paid back."""
    trajectories = [
        episode(step(1.0, (-1.0, -2.0)), step(0.0, (-4.0,))),
        episode(step(-1.0, (-1.0,))),
    ]
    reference = [[-2.0, -3.0], [-4.0], [-0.5]]
    charged = penalised(trajectories, reference, 0.5)
    rewards = [[s.reward for s in trajectory.steps] for trajectory in charged]
    assert rewards == [pytest.approx([0.0, 0.0]), pytest.approx([-0.75])]
    assert [s.reward for s in trajectories[0].steps] == [1.0, 0.0]  # the records stay as they are


@pytest.mark.parametrize("coefficient", [-0.1, float("inf"), float("nan")])
def test_refused(coefficient: float) -> None:
    with pytest.raises(ConfigError, match=r"kl_coefficient is .* — expected 0 or more"):
        replace(PPOConfig(), kl_coefficient=coefficient)
