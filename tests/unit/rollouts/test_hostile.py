"""What an environment gives is looked at before anybody learns from it, whoever plays."""

import math

import pytest

from forethought.configs.parts import EnvironmentConfig, PromptConfig, SamplingConfig
from forethought.environments.vector import InProcessRunner
from forethought.errors import EnvironmentUnusableError
from forethought.prompts.prompters import PlainPrompter
from forethought.rollouts.collector import Collector
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.seeding import Split
from forethought.rollouts.task import open_task
from forethought.types import EnvironmentFailure, Trajectory
from tests.unit.environments.hostile_environment import HOSTILE, HostileEnvironment
from tests.unit.rollouts.dice import Dice

PROMPTER = PlainPrompter(HostileEnvironment.actions, "action_only")
CRASH, TIMEOUT = EnvironmentFailure.CRASH, EnvironmentFailure.TIMEOUT

each_trouble = pytest.mark.parametrize(
    ("trouble", "failure"),
    [*((name, CRASH) for name in (*HOSTILE, "exit", "interrupt")), ("hang", TIMEOUT)],
)


def assert_sound(trajectory: Trajectory) -> None:
    assert trajectory.steps
    assert all(math.isfinite(step.reward) for step in trajectory.steps)


@each_trouble
def test_an_expert_or_random_policy_loses_the_episode_alone(
    trouble: str, failure: EnvironmentFailure
) -> None:
    """As `collect` and the rows of `evaluate` beside the policy play."""

    def hostile() -> HostileEnvironment:
        return HostileEnvironment(trouble)

    played = list(
        play("Count", hostile, PROMPTER, expert_response("action_only"), range(4), timeout_s=0.2)
    )
    assert [trajectory.failure for trajectory in played] == [None, failure, None, failure]
    for sound, lost in zip(played[::2], played[1::2], strict=True):
        assert_sound(sound)
        assert lost.steps == ()


@each_trouble
def test_a_policy_loses_the_episode_alone(trouble: str, failure: EnvironmentFailure) -> None:
    """As `evaluate` and training play."""
    with InProcessRunner(HostileEnvironment, 2, timeout_s=0.2) as runner:
        collector = Collector(
            environment_id="Count",
            runner=runner,
            policy=Dice({"end": 0.3, "add": 0.6, trouble: 0.1}),
            prompter=PROMPTER,
            sampling=SamplingConfig(max_new_tokens=8, temperature=1.0),
            split=Split.TRAINING,
            run_seed=0,
        )
        played = collector.collect_episodes(range(12)).trajectories
    assert {trajectory.failure for trajectory in played} == {None, failure}
    for trajectory in played:
        if trajectory.failure is None:
            assert_sound(trajectory)
        else:
            assert trajectory.steps == ()


def test_where_every_episode_is_lost_the_last_one_is_named() -> None:
    """With its seed and step."""
    with InProcessRunner(HostileEnvironment, 1) as runner:
        collector = Collector(
            environment_id="Count",
            runner=runner,
            policy=Dice({"nan": 1.0}),
            prompter=PROMPTER,
            sampling=SamplingConfig(max_new_tokens=8, temperature=1.0),
            split=Split.TRAINING,
            run_seed=0,
        )
        with pytest.raises(
            EnvironmentUnusableError, match=r"crash: seed \d+, step 1: .*: reward is nan — expected"
        ):
            collector.collect_episodes(range(12))


class ShowsHalf(HostileEnvironment):
    """At once."""

    def reset(self, seed: int):  # type: ignore[no-untyped-def]
        super().reset(seed)
        self._last = "half surrogate"
        return self.observation()


class LeavesAtOnce(HostileEnvironment):
    def __init__(self) -> None:
        raise SystemExit(0)


def test_what_is_seen_first_is_looked_at_as_well() -> None:
    here = "tests.unit.rollouts.test_hostile"
    task = open_task(
        EnvironmentConfig(f"{here}:ShowsHalf"), PromptConfig(), default_image_size=None
    )
    with pytest.raises(EnvironmentUnusableError, match=r"seed 7, step 0: text holds '\\ud800'"):
        task.first_observation(7)
    with pytest.raises(EnvironmentUnusableError, match=r"LeavesAtOnce: SystemExit: 0$"):
        open_task(
            EnvironmentConfig(f"{here}:LeavesAtOnce"), PromptConfig(), default_image_size=None
        )
