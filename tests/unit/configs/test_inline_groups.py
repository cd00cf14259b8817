"""A group marked `Inline` lies beside its neighbors: in YAML, in dotted names, in complaints."""

from pathlib import Path

import pytest
import yaml

from forethought.algorithms.ppo.config import PPOConfig
from forethought.configs.file import Setting, dump_config, load_config, with_settings
from forethought.configs.parts import RolloutConfig, SamplingConfig
from forethought.errors import ConfigError

SAMPLED = RolloutConfig(sampling=SamplingConfig(0.7, 32, constrain_actions=True))


def test_yaml_has_the_fields_in_the_group_that_they_lie_in() -> None:
    found = yaml.safe_load(dump_config(PPOConfig(rollout=SAMPLED)))["rollout"]
    assert found == {
        "num_envs": 64,
        "steps_per_iteration": 512,
        "temperature": 0.7,
        "max_new_tokens": 32,
        "constrain_actions": True,
        "on_invalid": "random",
    }


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(PPOConfig(rollout=SAMPLED)))
    assert load_config(path, PPOConfig) == PPOConfig(rollout=SAMPLED)


def test_a_dotted_name_passes_over_the_group() -> None:
    changed = with_settings(PPOConfig(), [Setting("rollout.temperature", 0.7)])
    assert changed.rollout.sampling == SamplingConfig(temperature=0.7)
    assert changed.rollout.num_envs == PPOConfig().rollout.num_envs


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("rollout.temprature", "did you mean rollout.temperature?"),
        ("rollout.sampling", "unknown field rollout.sampling"),
    ],
)
def test_the_group_itself_has_no_name(name: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        with_settings(PPOConfig(), [Setting(name, 1)])
    assert complaint in str(refused.value)
