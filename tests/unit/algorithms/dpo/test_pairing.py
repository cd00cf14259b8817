"""What is played for pairs, and the pairs that are found: by a policy that throws dice."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from forethought.algorithms.dpo.config import DPOConfig, Pairing
from forethought.algorithms.dpo.pairing import (
    Gathered,
    gather,
    make_collectors,
    places,
    stored_pairs,
)
from forethought.configs.parts import EnvironmentConfig, PromptConfig, RolloutConfig
from forethought.environments.vector import InProcessRunner
from forethought.errors import ConfigError, StorageError
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task, open_task
from forethought.runs.pairs import read_pairs, write_pairs
from forethought.targets.preference import trajectory_scores
from forethought.types import Trajectory
from tests.unit.algorithms.stairs import TOP, Stairs
from tests.unit.rollouts.dice import Dice

ENVIRONMENT = EnvironmentConfig("tests.unit.algorithms.stairs:Stairs")


class Alone:
    """A run in one process."""

    process, processes, progress = 0, 1, None

    def gather(self, items: list[Any]) -> list[Any]:
        return items


def settings(pairing: Pairing, **changes: Any) -> DPOConfig:
    config = DPOConfig(
        environment=ENVIRONMENT,
        total_steps=64,
        pairing=pairing,
        pairs_per_iteration=64,
        batch_size=8,
        rollout=RolloutConfig(num_envs=8, steps_per_iteration=64, on_invalid="penalize"),
    )
    return replace(config, **changes)


class Counting(Alone):
    """Remembers how many steps each round had."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def gather(self, items: list[Any]) -> list[Any]:
        self.rounds.append(sum(items))
        return items


def play(config: DPOConfig, iteration: int = 0, run: Any = None) -> Gathered:
    task: Task = open_task(ENVIRONMENT, PromptConfig(), default_image_size=None)
    run = run or Alone()
    policy: Any = Dice({"up": 0.5, "down": 0.3, "jump": 0.2})
    with InProcessRunner(Stairs, 8) as runner:
        collectors = make_collectors(config, policy, task, runner, run, lambda _: None)
        for number in range(iteration):
            gather(collectors, config, run, number)
        return gather(collectors, config, run, iteration)


def steps_of(gathered: Gathered) -> int:
    return sum(len(t.steps) for t in gathered.collected.trajectories)


def branched(gathered: Gathered) -> list[Trajectory]:
    return [t for t in gathered.collected.trajectories if t.first_step > 0]


def same(one: Gathered, other: Gathered) -> bool:
    def tale(trajectory: Trajectory) -> tuple[int, int, list[str]]:
        actions = [step.action.action for step in trajectory.steps]
        return trajectory.seed, trajectory.first_step, actions

    ours, theirs = ([tale(t) for t in g.collected.trajectories] for g in (one, other))
    margins = [[pair.margin for pair in g.pairs] for g in (one, other)]
    return ours == theirs and margins[0] == margins[1]


@pytest.mark.parametrize("pairing", ["matched", "branch", "mcts"])
def test_pairs_are_answers_to_one_question(pairing: Pairing) -> None:
    gathered = play(settings(pairing))
    assert gathered.pairs
    for chosen, rejected in gathered.pairs:
        assert chosen.step.state_key == rejected.step.state_key
        assert chosen.step_index == rejected.step_index
        assert chosen.step.prompt.messages[0].text == rejected.step.prompt.messages[0].text
        assert chosen.step.action.action != rejected.step.action.action
        assert chosen.score > rejected.score
    assert steps_of(gathered) >= 64
    assert all(t.is_finished for t in gathered.collected.trajectories)


@pytest.mark.parametrize("pairing", ["trajectory", "matched", "branch", "mcts"])
def test_an_iteration_ends_with_the_round_that_has_its_steps(pairing: Pairing) -> None:
    """Those of branches and searches included; all of them are kept."""
    run = Counting()
    gathered = play(settings(pairing), run=run)
    assert sum(run.rounds) == steps_of(gathered)
    assert sum(run.rounds[:-1]) < 64 <= sum(run.rounds)


@pytest.mark.parametrize("group", ["start", "task_type"])
def test_trajectories_of_one_task_are_compared_in_whatever_states(
    group: Literal["start", "task_type"],
) -> None:
    """Eq. 1: the same step index, each response on its own prefix."""
    gathered = play(settings("trajectory", group_size=4, pair_group=group))
    episodes = {id(step): t.seed for t in gathered.collected.trajectories for step in t.steps}
    seeds = [[episodes[id(side.step)] for side in pair] for pair in gathered.pairs]
    states = [[side.step.state_key for side in pair] for pair in gathered.pairs]
    for (chosen, rejected), keys in zip(gathered.pairs, states, strict=True):
        assert chosen.step_index == rejected.step_index
        assert chosen.score > rejected.score
        assert [int(key.split()[1]) for key in keys] == [chosen.step_index] * 2
        for side in (chosen, rejected):
            height = side.step.state_key.split()[0]
            assert f"stair {height}" in side.step.prompt.messages[0].text
    assert any(chosen != rejected for chosen, rejected in states)
    assert all(ours == theirs for ours, theirs in seeds) == (group == "start")
    assert len(gathered.pairs) > len(play(settings("matched", group_size=4)).pairs)


@pytest.mark.parametrize("pairing", ["branch", "mcts"])
def test_branches_begin_in_states_that_were_passed(pairing: Pairing) -> None:
    gathered = play(settings(pairing))
    whole = [t for t in gathered.collected.trajectories if t.first_step == 0]
    states = {(t.seed, i, s.state_key) for t in whole for i, s in enumerate(t.steps)}
    found = branched(gathered)
    assert found
    if pairing == "branch":
        assert {(t.seed, t.first_step, t.steps[0].state_key) for t in found} <= states
    assert len(gathered.collected.episodes) <= len(whole)


def test_a_branch_counts_what_is_gained_from_there() -> None:
    """Scores are those of the same episode seen whole: progress before is not a gain."""
    for pair in play(settings("branch", branches=3)).pairs:
        for candidate in pair:
            assert -TOP * 50 / 0.9 < candidate.score <= 50.0
            height = int(candidate.step.state_key.split()[0])
            reachable = 50 * (TOP - height) / TOP
            assert candidate.score <= reachable + 1e-9


def test_a_short_horizon_branches_more_states_and_judges_by_what_it_sees() -> None:
    """One step up is a third of the goal, one down takes it back; nothing else is seen."""
    worths = {round(50 / 3, 9), round(-50 / 3, 9), 0.0, -1.0}
    gathered = play(settings("branch", horizon=1))
    branches = [t for t in gathered.collected.trajectories if len(t.steps) == 1]
    states = {(t.seed, t.first_step) for t in branches}
    assert len(states) > len({(t.seed, t.first_step) for t in branched(play(settings("branch")))})
    for chosen, rejected in gathered.pairs:
        assert {round(side.score, 9) for side in (chosen, rejected)} <= worths
    whole = sum(len(t.steps) for t in gathered.collected.trajectories if t.first_step == 0)
    assert steps_of(gathered) <= 2 * whole


def test_scores_of_matched_pairs_are_their_trajectories() -> None:
    config = settings("matched")
    gathered = play(config)
    known = {
        id(step): float(score)
        for t in gathered.collected.trajectories
        for step, score in zip(
            t.steps,
            trajectory_scores(t, pair_reward="progress_delta", gamma=config.gamma),
            strict=True,
        )
    }
    means = [c.score for pair in gathered.pairs for c in pair]
    assert min(known.values()) <= min(means)
    assert max(means) <= max(known.values())


@pytest.mark.parametrize("pairing", ["trajectory", "matched", "branch", "mcts"])
def test_an_iteration_is_a_function_of_seed_and_number(pairing: Pairing) -> None:
    assert same(play(settings(pairing), 1), play(settings(pairing), 1))
    assert not same(play(settings(pairing)), play(settings(pairing), 1))
    assert not same(play(settings(pairing)), play(settings(pairing, seed=1)))


@pytest.mark.parametrize("pairing", ["trajectory", "matched", "branch", "mcts"])
def test_what_was_compared_can_be_found_again(pairing: Pairing, tmp_path: Path) -> None:
    gathered = play(settings(pairing))
    write_pairs(tmp_path / "pairs" / "one.jsonl", places(gathered))
    found = read_pairs(tmp_path / "pairs" / "one.jsonl")
    assert len(found) == len(gathered.pairs)
    for place, pair in zip(found, gathered.pairs, strict=True):
        for ours, theirs in zip(place, pair, strict=True):
            trajectory = gathered.collected.trajectories[ours.trajectory]
            assert trajectory.steps[ours.step] is theirs.step
            assert trajectory.first_step + ours.step == theirs.step_index
            assert ours.score == theirs.score


def test_pairs_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text('{"chosen": 3}\n', encoding="utf-8")
    with pytest.raises(StorageError, match="got something else than pairs, one a line"):
        read_pairs(tmp_path / "pairs.jsonl")


def test_the_cap_per_state() -> None:
    few, many = (len(play(settings("matched", pairs_per_state=n)).pairs) for n in (1, 50))
    assert few < many


def test_a_run_is_what_the_loop_needs_of_it() -> None:
    """The stand-in has no more than the real one."""
    from forethought.training.run import Run

    assert {name for name in vars(Alone) if not name.startswith("_")} <= {
        *vars(Run),
        *Run.__dataclass_fields__,
    }


def test_what_a_later_part_gained_is_not_known(tmp_path: Path) -> None:
    """Stored in pieces, an episode's end looks as if all of its progress had come there."""
    parts = branched(play(settings("branch")))
    write_shard(tmp_path / "parts.parquet", parts)
    stored = settings("matched", data=str(tmp_path))
    with pytest.raises(ConfigError, match="holds no two responses in the same state"):
        stored_pairs(stored, Alone())  # type: ignore[arg-type]
    assert stored_pairs(replace(stored, pair_reward="progress"), Alone())  # type: ignore[arg-type]
