"""An expert that slips: what is done in the environment, and what is learned of it."""

from collections import Counter
from itertools import islice

import pytest

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.steps import NoisyExpert, demonstrated_steps
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.environments.contract import ExpertAction
from forethought.errors import ConfigError
from forethought.prompts.prompters import PlainPrompter
from forethought.rollouts.scripted import play
from forethought.rollouts.task import open_task
from tests.unit.algorithms.stairs import Stairs

STAIRS = EnvironmentConfig("tests.unit.algorithms.stairs:Stairs")
ACTION_ONLY = PromptConfig(format="action_only")


class Doors(Stairs):
    """Every stair has a command of its own."""

    actions = ()

    def legal_actions(self) -> tuple[str, ...]:
        return (f"up from {self.observation().text}", "down")


def episodes(share: float, environment: Stairs) -> list[tuple[list[bool], list[str]]]:
    """Slips and actions of 200 episodes."""
    expert = NoisyExpert(share, "action_only", seed=1)
    prompter = PlainPrompter(("up", "down"), "action_only")
    played = play("Stairs", environment, prompter, expert, range(200))
    return [(expert.end_episode(), [s.action.action for s in t.steps]) for t in played]


def test_its_share_of_the_steps_are_slips() -> None:
    slips = [slip for flags, _ in episodes(0.25, Stairs()) for slip in flags]
    assert 0.2 < sum(slips) / len(slips) < 0.3


def test_a_slip_is_drawn_from_what_was_offered_and_the_rest_is_the_expert() -> None:
    for flags, actions in episodes(0.5, Stairs()):
        assert len(flags) == len(actions)
        assert {action for action, slip in zip(actions, flags, strict=True) if not slip} <= {"up"}
    drawn = Counter(
        action
        for flags, actions in episodes(0.5, Stairs())
        for action, slip in zip(actions, flags, strict=True)
        if slip
    )
    assert 0.4 < drawn["down"] / drawn.total() < 0.6


def test_what_is_not_possible_any_more_may_be_tried_and_no_other_episodes_commands() -> None:
    expert = NoisyExpert(1 - 1e-9, "action_only", seed=1)
    late: Counter[str] = Counter()
    for _ in range(200):
        environment = Doors()
        first = environment.reset(0)
        assert "stair 1" not in expert(environment, first)
        environment.step("up")
        late[expert(environment, environment.observation())] += 1
        expert.end_episode()
    assert len(late) == 3
    assert any("up from stair 0" in text for text in late)


class Hesitant(Stairs):
    """Its expert has no expert_action when it is asked for the second time."""

    asked = 0

    def expert(self) -> ExpertAction:
        self.asked += 1
        if self.asked == 2:
            raise OSError
        return super().expert()


def test_an_answer_that_the_expert_did_not_give_is_none() -> None:
    """It is asked again, and the flags stay beside the steps."""
    flags, actions = episodes(1e-9, Hesitant())[0]
    assert (flags, actions) == ([False] * 3, ["up"] * 3)


def test_slips_are_not_learned_and_what_follows_is() -> None:
    task = open_task(STAIRS, ACTION_ONLY, default_image_size=None)
    config = SFTConfig(environment=STAIRS, prompt=ACTION_ONLY, action_noise=0.5)
    shown = list(islice(demonstrated_steps(task, config), 200))
    steps = [step for step, is_learned in shown if is_learned]
    assert {step.action.action for step in steps} == {"up"}
    assert "down" in {step.action.action for step, is_learned in shown if not is_learned}
    flawless = SFTConfig(environment=STAIRS, prompt=ACTION_ONLY)
    stairs = [step.state_key for step, _ in islice(demonstrated_steps(task, flawless), 100)]
    assert len(set(stairs)) == 3
    assert len({step.state_key for step in steps}) > 3


def test_settings_that_say_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"action_noise is 1.0 — expected 0 or more, below 1"):
        SFTConfig(action_noise=1.0)
    with pytest.raises(ConfigError, match=r"action_noise is 0.1 — expected 0 with stored data"):
        SFTConfig(action_noise=0.1, data="data")
