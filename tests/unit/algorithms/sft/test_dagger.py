"""Episodes that a policy played, with the expert's answers in their states."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.steps import corrected, corrected_steps
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.errors import ConfigError
from forethought.prompts.prompters import PlainPrompter
from forethought.prompts.responses import write_response
from forethought.rollouts.scripted import expert_response, play, random_response
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import open_task
from forethought.types import Trajectory
from tests.unit.algorithms.stairs import Stairs

PROMPTER = PlainPrompter(("up", "down"), "thoughts")
EXPERT = expert_response("thoughts")


class OneStair(Stairs):
    """Remembers no steps: a state that is met again is the same."""

    def observation(self):
        return replace(super().observation(), state_key=str(self._height))


class Downstairs(Stairs):
    """Another environment, which begins higher."""

    def reset(self, seed: int):
        super().reset(seed)
        return self.step("up") and self.observation()


def walk(environment: Stairs, seed: int = 3) -> Trajectory:
    """Six random steps or fewer."""
    [trajectory] = play("Stairs", environment, PROMPTER, random_response(seed), [0])
    assert "down" in {step.action.action for step in trajectory.steps}
    return trajectory


def test_the_expert_answers_where_the_player_went() -> None:
    played = walk(Stairs())
    steps = list(corrected(played, Stairs(), PROMPTER, EXPERT))
    assert [step.prompt for step in steps] == [step.prompt for step in played.steps]
    assert {step.action.action for step in steps} == {"up"}
    assert {step.completion.text for step in steps} == {
        write_response(Stairs().expert(), "thoughts")
    }
    assert all(step.action.is_valid for step in steps)


def test_what_is_met_again_is_learned_once() -> None:
    played = walk(OneStair())
    keys = [step.state_key for step in played.steps]
    assert len(set(keys)) < len(keys)
    steps = list(corrected(played, OneStair(), PROMPTER, EXPERT))
    assert [step.state_key for step in steps] == list(dict.fromkeys(keys))


@pytest.mark.parametrize("number", [0, 2])
def test_another_episode_is_refused(number: int) -> None:
    played = walk(Stairs())
    steps = list(played.steps)
    steps[number] = replace(steps[number], state_key="elsewhere")
    told = f"corrections: the episode of seed 0 .* from step {number} on — expected whole"
    with pytest.raises(ConfigError, match=told):
        list(corrected(replace(played, steps=tuple(steps)), Stairs(), PROMPTER, EXPERT))


def test_another_environment_or_half_an_episode_is_refused() -> None:
    with pytest.raises(ConfigError, match="not the one that is played here, from step 0 on"):
        list(corrected(walk(Stairs()), Downstairs(), PROMPTER, EXPERT))
    with pytest.raises(ConfigError, match="expected whole episodes"):
        list(corrected(replace(walk(Stairs()), first_step=1), Stairs(), PROMPTER, EXPERT))


def test_stored_episodes(tmp_path: Path) -> None:
    environment = EnvironmentConfig("tests.unit.algorithms.stairs:Stairs")
    config = SFTConfig(environment=environment, prompt=PromptConfig(format="thoughts"))
    task = open_task(config.environment, config.prompt, default_image_size=None)
    played = list(islice(play("Stairs", Stairs(), task.prompter, random_response(3), range(4)), 4))
    write_shard(tmp_path / "0.parquet", played)
    steps = list(corrected_steps(task, config, tmp_path))
    assert len(steps) == sum(len(trajectory.steps) for trajectory in played)
    assert {step.action.action for step in steps} == {"up"}


def test_settings_that_say_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"dagger_data is 'own' — expected none with stored data"):
        SFTConfig(dagger_data="own", data="data")


def test_how_many_updates_there_will_be_is_known_of_demonstrations_alone() -> None:
    config = SFTConfig(expert_steps=100, epochs=1.5, batch_size=32)
    assert config.total_updates == config.updates(100) == 5
    assert replace(config, dagger_data="own").total_updates is None
    assert replace(config, data="data").total_updates is None
    assert config.updates(1) == 1
