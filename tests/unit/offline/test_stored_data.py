"""Which stored episodes a run may learn from."""

from itertools import islice
from pathlib import Path

import pytest

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.train import train_sft
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.errors import ConfigError
from forethought.offline.dataset import require_learnable, require_own, unlike
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task, open_task

NUMBER_LINE = EnvironmentConfig("NumberLine")


def environment_of(size: int | None, name: str = "NumberLine") -> Task:
    return open_task(EnvironmentConfig(name), PromptConfig(), default_image_size=size)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two episodes of images of 48 × 48."""
    task = environment_of(48)
    episodes = play(task.id, task.factory(), task.prompter, expert_response("thoughts"), range(2))
    write_shard(tmp_path / "data.parquet", list(islice(episodes, 2)))
    return tmp_path / "data.parquet"


def test_images_of_another_size_are_refused(data: Path, tmp_path: Path) -> None:
    message = r"has images of 48 × 48, but the agent will see 64 × 64 — train with .*-size 48, or"
    for kind in (SFTConfig, QSFTConfig):
        config = kind(data=str(data), environment=NUMBER_LINE)
        with pytest.raises(ConfigError, match=message):
            require_learnable(config, environment_of(64))
        require_learnable(config, environment_of(48))
    with pytest.raises(ConfigError, match=message):
        train_sft(SFTConfig(data=str(data), output=str(tmp_path / "run"), environment=NUMBER_LINE))


def test_without_data_nothing_is_compared() -> None:
    for config in (SFTConfig(), PPOConfig()):
        require_learnable(config, environment_of(64))
        assert unlike(config, environment_of(64)) is None


def test_data_of_another_environment_are_refused(data: Path) -> None:
    config = SFTConfig(data=str(data), environment=EnvironmentConfig("EZPoints"))
    with pytest.raises(ConfigError, match="holds episodes of NumberLine, but the run is of EZPoi"):
        require_learnable(config, environment_of(48, "EZPoints"))


def test_data_without_a_step_are_refused(tmp_path: Path) -> None:
    write_shard(tmp_path / "empty.parquet", [])
    config = SFTConfig(data=str(tmp_path), environment=NUMBER_LINE)
    with pytest.raises(ConfigError, match="holds no episode with a step"):
        require_learnable(config, environment_of(64))


@pytest.mark.parametrize("field", ["data", "dagger_data"])
def test_held_out_episodes_are_refused(field: str, tmp_path: Path) -> None:
    """One among others is enough; no run that was judged teaches the next one its answers."""
    task = environment_of(64)
    seeds = [episode_seed(Split.TRAINING, 0, 0), episode_seed(Split.EVALUATION, 0, 7)]
    episodes = play(task.id, task.factory, task.prompter, expert_response("thoughts"), seeds)
    write_shard(tmp_path / "both.parquet", list(episodes))
    with pytest.raises(ConfigError, match=f"{field}: .* holds held-out episodes"):
        require_own(field, str(tmp_path), task)


def test_prompts_of_other_settings_are_told(data: Path) -> None:
    config = SFTConfig(data=str(data), environment=NUMBER_LINE)
    assert unlike(config, environment_of(48)) is None
    bare = open_task(NUMBER_LINE, PromptConfig(format="action_only"), default_image_size=48)
    note = unlike(config, bare)
    assert note is not None
    assert note.startswith(f"the prompts in {data} are not those that NumberLine has")
