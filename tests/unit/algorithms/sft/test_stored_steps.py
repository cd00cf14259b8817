"""Filtered and return-conditioned imitation: which stored steps, and with which prompts."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.steps import stored_steps
from forethought.algorithms.sft.train import train_sft
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    PromptConfig,
    SamplingConfig,
)
from forethought.environments.contract import ExpertAction
from forethought.errors import ConfigError
from forethought.evaluation.evaluate import EvaluationSettings, play_policy
from forethought.generation.huggingface import load_policy
from forethought.prompts.responses import write_response
from forethought.rollouts.scripted import play
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task, open_task
from forethought.runs.checkpoints import model_source
from forethought.types import Observation, Trajectory
from tests.unit.algorithms.conftest import ACTION_ONLY, CROSSING
from tests.unit.algorithms.crossing import Crossing, straight_on


def config_for(data: Path, **changes: object) -> SFTConfig:
    base = SFTConfig(data=str(data), environment=CROSSING, prompt=ACTION_ONLY)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_the_best_quarter(walks: Path) -> None:
    """One of four starts in the north and comes to the goal, by going down."""
    steps = list(stored_steps(config_for(walks, filter_top_fraction=0.25), walks))
    assert len(steps) == 20 * 4
    assert {step.action.action for step in steps} == {"down"}
    assert len(list(stored_steps(config_for(walks), walks))) == 80 * 4


def test_levels_are_told(walks: Path) -> None:
    prompt = replace(ACTION_ONLY, return_bins=2)
    steps = list(stored_steps(config_for(walks, prompt=prompt), walks))
    by_action = {step.action.action: step.prompt.messages[-1].text for step in steps}
    assert by_action["down"].endswith("\nWanted return: level 2 of 2")
    assert by_action["right"].endswith("\nWanted return: level 1 of 2")
    both = config_for(walks, prompt=prompt, filter_top_fraction=0.25)
    assert all("level 2 of 2" in s.prompt.messages[-1].text for s in stored_steps(both, walks))


def test_refused(tmp_path: Path, walks: Path) -> None:
    write_shard(tmp_path / "empty.parquet", [])
    with pytest.raises(ConfigError, match="holds no episode with a step"):
        list(stored_steps(config_for(walks, filter_top_fraction=0.5), tmp_path))
    with pytest.raises(ConfigError, match=r"filter_top_fraction is 0.5 — expected 1 without data"):
        SFTConfig(filter_top_fraction=0.5)
    with pytest.raises(ConfigError, match=r"prompt.return_bins is 4 — expected 0 without data"):
        SFTConfig(prompt=PromptConfig(return_bins=4))
    with pytest.raises(ConfigError, match=r"filter_top_fraction is 0.0 — expected above 0"):
        SFTConfig(data="data", filter_top_fraction=0.0)


def test_replies_are_refused_where_there_are_none(
    small_model: Path, walks: Path, tmp_path: Path
) -> None:
    output = str(tmp_path / "run")
    config = config_for(walks, model=str(small_model), output=output, observation_loss_weight=1.0)
    with pytest.raises(
        ConfigError, match=r"observation_loss_weight is 1.0 — expected 0 where no prompt goes"
    ):
        train_sft(config)
    with pytest.raises(ConfigError, match=r"observation_loss_weight is -1.0 — expected 0 or more"):
        config_for(walks, observation_loss_weight=-1.0)


@pytest.mark.slow
def test_it_does_what_it_is_asked_for(small_model: Path, crossing: Task, tmp_path: Path) -> None:
    """From the north half walk on to the goal and half turn off into the pit."""
    starts = range(0, 160, 4)
    walks = [*straight_on(crossing, starts), *turning_off(crossing, starts)]
    write_shard(tmp_path / "walks.parquet", walks)
    config = SFTConfig(
        model=str(small_model),
        data=str(tmp_path / "walks.parquet"),
        output=str(tmp_path / "run"),
        epochs=25.0,
        batch_size=16,
        checkpoint_every=1000,
        environment=CROSSING,
        prompt=replace(ACTION_ONLY, return_bins=2),
        optimizer=OptimizerConfig(learning_rate=3e-3, final_learning_rate=3e-4, epsilon=1e-8),
        compute=ComputeConfig(threads=1),
    )
    model = Path(model_source(str(train_sft(config))))
    assert [success(model, level) for level in (1, 2, None)] == [0.0, 1.0, 1.0]


def turning_off(task: Task, seeds: range) -> Iterator[Trajectory]:
    """From the north to the crossing, and there to the right, into the pit."""

    def answer(_: object, seen: Observation) -> str:
        move = "right" if seen.text is not None and "row 2" in seen.text else "down"
        return write_response(ExpertAction(move, ()), "action_only")

    return play(task.id, Crossing(), task.prompter, answer, seeds)


def success(model: Path, level: int | None) -> float:
    prompt = replace(ACTION_ONLY, return_bins=2, return_bin=level)
    environment = EnvironmentConfig(CROSSING.id)
    task = open_task(environment, prompt, default_image_size=None)
    settings = EvaluationSettings(
        episodes=8, sampling=SamplingConfig(temperature=0.0, max_new_tokens=12), num_envs=8
    )
    played = play_policy(load_policy(str(model), slots=8), task, settings)
    north = [one for one in played if one.seed % 4 == 0]
    return sum(one.success for one in north) / len(north)
