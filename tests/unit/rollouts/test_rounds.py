"""Rounds of whole episodes, in groups that start from one seed."""

import pytest

from forethought.configs.parts import SamplingConfig
from forethought.environments.vector import InProcessRunner
from forethought.prompts.prompters import PlainPrompter
from forethought.rollouts.collector import Collected, Collector
from forethought.rollouts.seeding import Split, episode_seed
from tests.unit.environments.troublesome_environment import FaultyEnvironment
from tests.unit.rollouts.dice import Dice

RUN_SEED = 3


def collector(
    *, slots: int = 6, first_slot: int = 0, group_size: int = 3, other: str = "add"
) -> Collector:
    """Some of six slots."""
    prompter = PlainPrompter(FaultyEnvironment.actions, "action_only")
    return Collector(
        environment_id="Count",
        runner=InProcessRunner(FaultyEnvironment, slots),
        policy=Dice({"end": 1 / 3, other: 2 / 3}),
        prompter=prompter,
        sampling=SamplingConfig(max_new_tokens=8, temperature=1.0),
        split=Split.TRAINING,
        run_seed=RUN_SEED,
        group_size=group_size,
        first_slot=first_slot,
        total_slots=6,
    )


def played(collected: Collected) -> list[tuple[int, list[str]]]:
    """Seed and actions of each episode."""
    return [
        (trajectory.seed, [step.action.action for step in trajectory.steps])
        for trajectory in collected.trajectories
    ]


def seed_of(group: int) -> int:
    return episode_seed(Split.TRAINING, RUN_SEED, group)


def test_one_whole_episode_per_slot() -> None:
    collected = collector().collect_round()
    assert len(collected.trajectories) == len(collected.episodes) == 6
    assert all(t.is_finished and t.first_step == 0 for t in collected.trajectories)
    assert [episode.number for episode in collected.episodes] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("group_size", "groups"),
    [
        pytest.param(1, [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]], id="each its own"),
        pytest.param(3, [[0, 0, 0, 1, 1, 1], [2, 2, 2, 3, 3, 3]], id="two of three"),
        pytest.param(6, [[0] * 6, [1] * 6], id="all together"),
    ],
)
def test_neighboring_slots_share_a_seed(group_size: int, groups: list[list[int]]) -> None:
    ours = collector(group_size=group_size)
    for numbers in groups:
        seeds = [trajectory.seed for trajectory in ours.collect_round().trajectories]
        assert seeds == [seed_of(number) for number in numbers]


def test_the_answers_of_a_group_are_drawn_apart() -> None:
    lengths = [len(actions) for _, actions in played(collector(group_size=6).collect_round())]
    assert len(set(lengths)) > 1


def test_a_restored_collector_plays_the_next_round() -> None:
    whole = collector()
    whole.collect_round()
    again = collector()
    again.restore(whole.cursors())
    assert played(again.collect_round()) == played(whole.collect_round())


def test_two_processes_play_what_one_does() -> None:
    halves = [collector(slots=3, first_slot=first) for first in (0, 3)]
    whole = collector()
    for _ in range(2):
        parts = [played(half.collect_round()) for half in halves]
        assert [*parts[0], *parts[1]] == played(whole.collect_round())


def test_an_episode_that_is_given_up_is_not_made_up_for() -> None:
    collected = collector(other="raise").collect_round()
    failed = [trajectory for trajectory in collected.trajectories if trajectory.failure]
    assert 0 < len(failed) < 6
    assert len(collected.trajectories) == 6
    assert len(collected.episodes) == 6 - len(failed)
    assert [t.seed for t in collected.trajectories] == [seed_of(0)] * 3 + [seed_of(1)] * 3
