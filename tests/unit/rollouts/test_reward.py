"""A reward function replaces the environment's reward, and nothing else of it."""

import pytest

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.environments.reward import (
    StepOutcome,
    find_reward,
    is_importable,
    reward_name,
)
from forethought.errors import ConfigError, UnknownNameError
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.task import open_task

NAME = "tests.unit.rollouts.test_reward:steps_cost"


def steps_cost(outcome: StepOutcome) -> float:
    """One for success, minus a tenth for each step."""
    assert outcome.observation is not outcome.next_observation
    return float(outcome.success) - 0.1


def returns(config: EnvironmentConfig) -> list[tuple[float, int, bool]]:
    task = open_task(config, PromptConfig(), default_image_size=64)
    played = play(task.id, task.factory(), task.prompter, expert_response("thoughts"), range(6))
    return [(one.total_reward, len(one.steps), one.success) for one in played]


def test_the_reward_is_the_functions_and_success_is_the_environments() -> None:
    own = returns(EnvironmentConfig("NumberLine"))
    found = returns(EnvironmentConfig("NumberLine", reward=NAME))
    assert [one[1:] for one in found] == [one[1:] for one in own]
    for total, steps, success in found:
        assert total == pytest.approx(float(success) - 0.1 * steps)
    assert [one[0] for one in found] != [one[0] for one in own]


def test_worker_processes_find_it_by_name() -> None:
    config = EnvironmentConfig("NumberLine", reward=NAME)
    task = open_task(config, PromptConfig(), default_image_size=64)
    from forethought.environments.slots import Act, Observed, Reset

    with task.runner(1, workers=1) as runner:
        runner.send(0, Reset(3))
        (reply,) = runner.receive()
        assert isinstance(reply, Observed)
        runner.send(0, Act(reply.legal_actions[0]))
        (reply,) = runner.receive()
        assert isinstance(reply, Observed)
        assert reply.transition is not None
        assert reply.transition.reward == pytest.approx(float(reply.success) - 0.1)


def test_a_function_is_known_by_its_name() -> None:
    assert reward_name(steps_cost) == NAME
    assert is_importable(NAME, steps_cost)
    assert find_reward(NAME) is steps_cost


def test_a_function_that_no_import_finds_is_known_to_this_process() -> None:
    own = lambda outcome: outcome.reward  # noqa: E731
    name = reward_name(own)
    assert not is_importable(name, own)
    assert find_reward(name) is own


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.such:thing", "module no does not exist"),
        ("tests.unit.rollouts.test_reward:nothing", "'nothing' does not exist in tests.unit"),
    ],
)
def test_what_does_not_exist_is_named(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        returns(EnvironmentConfig("NumberLine", reward=name))


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no function"):
        returns(EnvironmentConfig("NumberLine", reward="tests.unit.rollouts.test_reward:NAME"))
    with pytest.raises(ConfigError, match=r"package\.module:function"):
        EnvironmentConfig(reward="shaped")
