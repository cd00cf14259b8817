"""`faithfulness`: what it writes, and what it refuses."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from forethought.rollouts.store import read_shard, write_shard
from forethought.types import Trajectory
from tests.unit.cli.terminal import Type


def speak(shard: Path) -> None:
    """Puts valid responses into the mouth of a model that has learned nothing yet; of each
    episode the first step is kept, as what follows would be another."""
    trajectories: list[Trajectory] = []
    for trajectory in read_shard(shard):
        step = trajectory.steps[0]
        text = '{"thoughts": "I choose +", "action": "+"}'
        valid = replace(
            step,
            completion=replace(step.completion, text=text),
            action=replace(step.action, action="+", is_valid=True, failure=None),
        )
        trajectories.append(replace(trajectory, steps=(valid,)))
    write_shard(shard, trajectories)


def test_a_run_is_asked_again(type_: Type, sft_run: Path) -> None:
    assert type_(f"evaluate {sft_run} --episodes 6 --threads 1").code == 0
    speak(sft_run / "evaluation_episodes.parquet")
    outcome = type_(f"faithfulness {sft_run} --steps 5 --threads 1")
    assert outcome.code == 0, outcome.err
    table = outcome.out
    assert all(name in table for name in ("own thoughts", "expert's", "of another state", "none"))
    assert (sft_run / "faithfulness.svg").read_text(encoding="utf-8").startswith("<?xml")
    stored = (sft_run / "faithfulness.json").read_text(encoding="utf-8")
    assert type_(f"faithfulness {sft_run} --steps 5 --threads 1 --json").out == stored
    assert json.loads(stored)["steps"] <= 5


def test_a_run_without_episodes_is_refused(type_: Type, sft_run: Path) -> None:
    (sft_run / "evaluation_episodes.parquet").unlink(missing_ok=True)
    shutil.rmtree(sft_run / "trajectories")
    outcome = type_(f"faithfulness {sft_run}")
    assert outcome.code == 2
    assert outcome.lines == [
        f"error: {sft_run}: no episodes are stored — run `forethought evaluate {sft_run}`"
    ]


def test_what_is_no_run_is_refused(type_: Type) -> None:
    outcome = type_("faithfulness no/run")
    assert outcome.code == 2
    assert outcome.lines == ["error: run is no/run — expected a run folder, whose steps are stored"]
