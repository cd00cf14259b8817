"""What a run says of its first iteration."""

from typing import Any, cast

import pytest

from forethought.training.summary import warn_if_all_invalid
from forethought.types import Metric
from tests.unit.algorithms.offline_runs import OneProcess


@pytest.mark.parametrize(
    ("iteration", "invalid_rate", "warns"),
    [
        pytest.param(0, 1.0, True, id="nothing was valid"),
        pytest.param(0, 0.99, False, id="one in a hundred was"),
        pytest.param(1, 1.0, False, id="later: it was said before, or has another cause"),
        pytest.param(0, None, False, id="nothing was played"),
    ],
)
def test_an_iteration_without_a_valid_response_is_told_once(
    iteration: int, invalid_rate: float | None, warns: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = [Metric("success_rate", 1.0)]
    if invalid_rate is not None:
        metrics.append(Metric("invalid_rate", invalid_rate))
    warn_if_all_invalid(iteration, metrics, cast(Any, OneProcess()), "runs/start")
    assert capsys.readouterr().err.startswith("warning: every response") == warns
