"""From recorded steps to advantages: the end of the record decides about the bootstrap."""

from dataclasses import replace

import pytest

from forethought.targets.returns import trajectory_advantages
from forethought.types import EnvironmentFailure, Trajectory
from tests.unit.targets.builders import CUT, ending

FIRST, SECOND, LAST = CUT.steps


@pytest.mark.parametrize(
    ("played", "advantages", "returns"),
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
def test_end(played: Trajectory, advantages: list[float], returns: list[float]) -> None:
    result = trajectory_advantages(played, gamma=0.5, gae_lambda=0.8)
    assert result.advantages_T.tolist() == pytest.approx(advantages)
    assert result.returns_T.tolist() == pytest.approx(returns)


@pytest.mark.parametrize(
    ("played", "message"),
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
        pytest.param(replace(CUT, steps=()), "Environment, seed 7: .* one step", id="no steps"),
        pytest.param(
            replace(CUT, failure=EnvironmentFailure.CRASH), "a crash is not", id="crashed episode"
        ),
        pytest.param(
            replace(CUT, steps=(FIRST, replace(SECOND, terminated=True), LAST)),
            "steps after its end",
            id="terminated in the middle",
        ),
        pytest.param(
            replace(CUT, steps=(replace(FIRST, truncated=True), SECOND, LAST)),
            "steps after its end",
            id="truncated in the middle",
        ),
        pytest.param(
            replace(CUT, steps=(FIRST, replace(SECOND, value=None), LAST)),
            "got 2 for 3 steps",
            id="a step that no critic saw",
        ),
    ],
)
def test_refused(played: Trajectory, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trajectory_advantages(played, gamma=0.5, gae_lambda=0.8)
