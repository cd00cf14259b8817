"""From recorded steps to advantages: the end of the record decides about the bootstrap."""

from dataclasses import replace

import pytest

from forethought.targets.gae import trajectory_advantages
from forethought.types import (
    Completion,
    EnvironmentFailure,
    FinishReason,
    ParsedAction,
    Prompt,
    Span,
    Step,
    Trajectory,
)


def step(reward: float, value: float | None) -> Step:
    return Step(
        prompt=Prompt(messages=(), token_ids=(1,)),
        completion=Completion((2,), (-0.1,), (0,), "+", FinishReason.STOP, temperature=1.0),
        action=ParsedAction("+", True, None, thought_span=Span(0, 0), action_span=Span(0, 1)),
        reward=reward,
        terminated=False,
        truncated=False,
        value=value,
        policy_version=0,
        state_key="",
        duration_s=0.0,
    )


# The three steps that test_gae.py works out by hand.
STEPS = (step(1.0, 2.0), step(0.0, 4.0), step(2.0, 1.0))
CUT = Trajectory(
    environment_id="bandit",
    seed=7,
    task_type="",
    first_step=0,
    steps=STEPS,
    bootstrap_value=6.0,
    success=False,
    measures=(),
)


def ending(*, terminated: bool, truncated: bool, bootstrap_value: float | None) -> Trajectory:
    last = replace(STEPS[-1], terminated=terminated, truncated=truncated)
    return replace(CUT, steps=(*STEPS[:-1], last), bootstrap_value=bootstrap_value)


@pytest.mark.parametrize(
    ("trajectory", "advantages", "returns"),
    [
        pytest.param(
            ending(terminated=True, truncated=False, bootstrap_value=None),
            [-0.24, -3.1, 1.0],
            [1.76, 0.9, 2.0],
            id="terminated: nothing follows",
        ),
        pytest.param(
            ending(terminated=False, truncated=True, bootstrap_value=6.0),
            [0.24, -1.9, 4.0],
            [2.24, 2.1, 5.0],
            id="truncated: the critic's value follows",
        ),
        pytest.param(
            CUT,
            [0.24, -1.9, 4.0],
            [2.24, 2.1, 5.0],
            id="cut by the end of collection: the critic's value follows",
        ),
        pytest.param(
            ending(terminated=True, truncated=True, bootstrap_value=None),
            [-0.24, -3.1, 1.0],
            [1.76, 0.9, 2.0],
            id="terminated at the limit: has terminated",
        ),
    ],
)
def test_end(trajectory: Trajectory, advantages: list[float], returns: list[float]) -> None:
    result = trajectory_advantages(trajectory, gamma=0.5, gae_lambda=0.8)
    assert result.advantages_T.tolist() == pytest.approx(advantages)
    assert result.returns_T.tolist() == pytest.approx(returns)


@pytest.mark.parametrize(
    ("trajectory", "message"),
    [
        pytest.param(
            ending(terminated=True, truncated=False, bootstrap_value=6.0),
            "None after termination",
            id="terminated, yet bootstrapped",
        ),
        pytest.param(
            ending(terminated=False, truncated=True, bootstrap_value=None),
            "truncated or cut",
            id="truncated without the value that follows",
        ),
        pytest.param(replace(CUT, bootstrap_value=None), "truncated or cut", id="cut without it"),
        pytest.param(replace(CUT, steps=()), "bandit, seed 7: .* one step", id="no steps"),
        pytest.param(
            replace(CUT, failure=EnvironmentFailure.CRASH), "a crash is not", id="crashed episode"
        ),
        pytest.param(
            replace(CUT, steps=(STEPS[0], replace(STEPS[1], terminated=True), STEPS[2])),
            "steps after its end",
            id="terminated in the middle",
        ),
        pytest.param(
            replace(CUT, steps=(replace(STEPS[0], truncated=True), *STEPS[1:])),
            "steps after its end",
            id="truncated in the middle",
        ),
        pytest.param(
            replace(CUT, steps=(STEPS[0], step(0.0, None), STEPS[2])),
            "got 2 for 3 steps",
            id="a step that no critic saw",
        ),
    ],
)
def test_refused(trajectory: Trajectory, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trajectory_advantages(trajectory, gamma=0.5, gae_lambda=0.8)
