"""Curves of seeds that were not measured at the same steps, and their mean."""

import json

import numpy as np
import pytest

from forethought.reports.charts import Curve
from forethought.studies.results import learning_curve, mean_curve
from tests.unit.studies.builders import make_plan


def curve(*points: tuple[float, float]) -> Curve:
    x, y = np.array(points).T
    return Curve(x, y)


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        pytest.param(
            [curve((1, 0.0), (2, 0.5)), curve((1, 1.0), (2, 1.0))],
            [(1, 0.5), (2, 0.75)],
            id="the same steps",
        ),
        pytest.param(
            # At 15 the first is at 0.25 and the second begins; at 35 the first ended long ago.
            [curve((10, 0.0), (20, 0.5), (30, 1.0)), curve((15, 0.75), (25, 0.25), (35, 0.5))],
            [(15, 0.5), (20, 0.5), (25, 0.5), (30, 0.6875)],
            id="steps between the other's, where both are",
        ),
        pytest.param(
            [curve((10, 0.0), (20, 1.0)), curve((10, 1.0), (20, 1.0), (30, 0.0))],
            [(10, 0.5), (20, 1.0)],
            id="one that is still learning",
        ),
        pytest.param([curve((3, 0.25))], [(3, 0.25)], id="one point"),
        pytest.param([curve((1, 0.0), (2, 1.0)), curve((3, 1.0))], [], id="never both"),
    ],
)
def test_mean(curves: list[Curve], expected: list[tuple[float, float]]) -> None:
    mean = mean_curve(curves)
    assert mean.x.tolist() == [x for x, _ in expected]
    assert mean.y.tolist() == pytest.approx([y for _, y in expected])


TWO_STAGES = """\
name: demo
seeds: [0]
variants:
  - name: twice
    stages: [{config: ppo.yaml}, {config: ppo.yaml, overrides: {gamma: 0.5}}]
"""


def test_a_stage_begins_where_the_one_before_has_ended() -> None:
    """Of 1024 steps as set, but the rounds of the first took 1200, in whole episodes."""
    (chain,) = make_plan(TWO_STAGES).variants[0].chains
    for run, taken in zip(chain, ((600, 600), (512, 512)), strict=True):
        run.folder.path.mkdir(parents=True)
        lines = [
            {"step": number, "environment_steps": steps, "success_rate": 0.5}
            for number, steps in enumerate(taken, start=1)
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        run.folder.metrics_path.write_text(text, encoding="utf-8")
    curve = learning_curve(chain)
    assert curve is not None
    assert curve.x.tolist() == [600, 1200, 1712, 2224]
