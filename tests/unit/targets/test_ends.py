"""How a run of steps may stop, and what then follows it."""

import math

import pytest

from forethought.targets.returns import value_after_last_step


@pytest.mark.parametrize(
    ("terminated", "bootstrap_value", "following"),
    [
        pytest.param(True, None, 0.0, id="terminated: nothing follows"),
        pytest.param(False, 6.0, 6.0, id="truncated or cut: the critic says"),
        pytest.param(False, 0.0, 0.0, id="a critic may say 0"),
    ],
)
def test_following(terminated: bool, bootstrap_value: float | None, following: float) -> None:
    assert (
        value_after_last_step(terminated=terminated, bootstrap_value=bootstrap_value) == following
    )


@pytest.mark.parametrize(
    ("terminated", "bootstrap_value", "message"),
    [
        pytest.param(True, 6.0, "None after termination, got 6.0", id="value after termination"),
        pytest.param(True, 0.0, "None after termination, got 0.0", id="even a value of 0"),
        pytest.param(False, None, "truncated or cut.*got None", id="no value after truncation"),
        pytest.param(False, math.nan, "finite number, got nan", id="not a number"),
    ],
)
def test_refused(terminated: bool, bootstrap_value: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        value_after_last_step(terminated=terminated, bootstrap_value=bootstrap_value)
