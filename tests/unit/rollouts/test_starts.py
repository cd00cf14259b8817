"""Slots that begin in the middle of an episode, and prompts that tell of what lies behind."""

import dataclasses
from typing import ClassVar

from forethought.configs.parts import EnvironmentConfig, PromptConfig, SamplingConfig
from forethought.environments.vector import InProcessRunner
from forethought.prompts.history import HistoryPrompter
from forethought.prompts.prompters import PlainPrompter
from forethought.rollouts.collector import Collector
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.seeding import Split
from forethought.rollouts.slot import Start
from forethought.rollouts.task import open_task
from forethought.types import Observation, Trajectory
from tests.unit.environments.troublesome_environment import FaultyEnvironment
from tests.unit.rollouts.dice import Dice

TOLD = HistoryPrompter(PlainPrompter(FaultyEnvironment.actions, "action_only"), "window", steps=2)


class SlowToStart(FaultyEnvironment):
    """The first restart of all fails."""

    starts: ClassVar[int] = 0

    def reset(self, seed: int) -> Observation:
        SlowToStart.starts += 1
        if SlowToStart.starts == 1:
            raise OSError("not yet")
        return super().reset(seed)


def collector(
    slots: int = 4,
    other: str = "add",
    environment: type[FaultyEnvironment] = FaultyEnvironment,
) -> Collector:
    return Collector(
        environment_id="Count",
        runner=InProcessRunner(environment, slots),
        policy=Dice({"end": 1 / 3, other: 2 / 3}),
        prompter=TOLD,
        sampling=SamplingConfig(max_new_tokens=8, temperature=1.0),
        split=Split.TRAINING,
        run_seed=0,
    )


def tale(trajectory: Trajectory) -> list[tuple[str, str, str]]:
    return [
        (step.prompt.messages[-1].text, step.action.action, step.state_key)
        for step in trajectory.steps
    ]


def test_each_start_is_played_to_the_end_in_the_order_asked_for() -> None:
    starts = [Start(7 + index, seed=100 * index, actions=("add",) * index) for index in range(9)]
    played = collector().collect_from(starts)
    for start, trajectory in zip(starts, played, strict=True):
        assert (trajectory.seed, trajectory.first_step) == (start.seed, len(start.actions))
        assert trajectory.is_finished
        first = trajectory.steps[0]
        assert first.state_key.split()[0] == str(100 * len(start.actions) + len(start.actions))
        told = first.prompt.messages[-1].text
        assert told.count("> add") == min(2, len(start.actions))


def test_a_start_is_left_after_its_horizon() -> None:
    starts = [Start(number, seed=5, actions=("add",)) for number in range(12)]
    whole, cut = collector().collect_from(starts), collector().collect_from(starts, horizon=2)
    for one, other in zip(whole, cut, strict=True):
        assert tale(other) == tale(one)[:2]
        assert other.is_finished == (len(one.steps) <= 2)
    assert {trajectory.is_finished for trajectory in cut} == {True, False}


def test_equal_starts_are_answered_apart() -> None:
    played = collector().collect_from([Start(n, seed=5, actions=("add",)) for n in range(12)])
    assert len({len(trajectory.steps) for trajectory in played}) > 1
    assert len({trajectory.steps[0].state_key for trajectory in played}) == 1


def test_a_crash_on_the_way_is_retried_and_told_the_same() -> None:
    """An action that crashes once more is given up, whatever lies before it."""
    starts = [Start(0, seed=1, actions=("add", "raise", "add")), Start(1, seed=1, actions=("add",))]
    crashed, played = collector().collect_from(starts)
    assert crashed.failure is not None
    assert crashed.steps == ()
    assert played.failure is None


def test_a_start_that_fails_once_is_begun_anew() -> None:
    SlowToStart.starts = 0
    starts = [Start(0, seed=1, actions=("add", "add")), Start(1, seed=1, actions=("add",))]
    expected = collector().collect_from(starts)
    found = collector(environment=SlowToStart).collect_from(starts)
    assert [tale(one) for one in found] == [tale(one) for one in expected]


def test_a_restored_slot_tells_the_same_past() -> None:
    whole, again = collector(), collector()
    whole.collect_steps(2)
    again.restore(whole.cursors())
    ours, theirs = again.collect_steps(3), whole.collect_steps(3)
    assert [tale(t) for t in ours.trajectories] == [tale(t) for t in theirs.trajectories]
    assert any("> add" in text for t in ours.trajectories for text, _, _ in tale(t)[:1])


def test_a_scripted_agent_is_told_as_a_model_is() -> None:
    prompt = PromptConfig(history="window", history_steps=1)
    task = open_task(EnvironmentConfig("NumberLine"), prompt, default_image_size=64)
    episodes = play(task.id, task.factory(), task.prompter, expert_response("thoughts"), range(9))
    long = next(episode for episode in episodes if len(episode.steps) > 1)
    texts = [step.prompt.messages[-1].text for step in long.steps]
    assert "Before:" not in texts[0]
    assert texts[1].startswith(f"Before:\n> {long.steps[0].action.action}\nNow:\n")
    assert len({step.state_key for step in long.steps}) == len(long.steps)
    assert all(dataclasses.is_dataclass(step) for step in long.steps)
