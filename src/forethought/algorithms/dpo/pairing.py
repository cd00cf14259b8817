"""What an iteration of preference optimization plays, and the pairs that it finds in it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.algorithms.dpo.config import OF_WHOLE_EPISODES, DPOConfig
from forethought.environments.vector import Runner
from forethought.errors import ConfigError
from forethought.generation.contract import Policy
from forethought.rollouts.collector import Collected, Collector
from forethought.rollouts.slot import Start
from forethought.rollouts.store import read_shards
from forethought.rollouts.task import Task
from forethought.runs.pairs import CompletionPlace, PairPlace
from forethought.targets.pairs import (
    Candidate,
    Compared,
    Pair,
    SearchTree,
    candidate_of,
    candidates_of,
    make_pairs,
)
from forethought.targets.preference import lookahead_score, trajectory_scores
from forethought.training.run import Run
from forethought.training.start import training_collector
from forethought.types import Trajectory

_BRANCHES = 1 << 48
"""Where the numbers of episodes that begin in the middle of another one begin."""


class Collectors(NamedTuple):
    """Two hands on the same slots, one at a time."""

    whole: Collector
    """Plays episodes of the training split from their beginning."""
    branches: Collector
    """Plays from states in the middle of them."""


class Gathered(NamedTuple):
    """Pairs and counts of one iteration and process."""

    collected: Collected
    """Everything that was played; its episodes are those played from their beginning."""
    pairs: list[Pair]
    steps: int = 0
    """Environment steps, those of all processes."""


class _Root(NamedTuple):
    """A state that an episode passed."""

    trajectory: Trajectory
    at: int
    """The step that was taken in it."""

    @property
    def actions(self) -> tuple[str, ...]:
        """That lead there from the start of the episode."""
        return tuple(step.action.action for step in self.trajectory.steps[: self.at])

    @property
    def progress(self) -> float:
        """Share of the goal that was met there."""
        return (self.trajectory.steps[self.at - 1].progress or 0.0) if self.at else 0.0


def make_collectors(
    config: DPOConfig,
    policy: Policy,
    task: Task,
    runner: Runner,
    run: Run,
    on_step: Callable[[int], object],
) -> Collectors:
    """Slots that play training episodes, and the same slots for what branches off them."""
    make = partial(
        training_collector(task, runner, policy, config), on_step=partial(on_step, run.processes)
    )
    whole = make(
        group_size=config.group_size if config.pairing in OF_WHOLE_EPISODES else 1,
        first_slot=runner.slots * run.process,
        total_slots=config.rollout.num_envs,
    )
    if run.progress is not None and config.data is None:
        whole.restore(run.progress.cursors[run.process])
    return Collectors(whole, make())


def gather(collectors: Collectors, config: DPOConfig, run: Run, iteration: int) -> Gathered:
    """Plays whole rounds until all processes together have an iteration's steps.

    Nothing is cut or left over, so the iteration ends some steps late.
    """
    everything = Collected([], [])
    numbers = _numbers(run, iteration)
    candidates: list[Candidate] = []
    steps = 0
    turn = 0
    while steps < config.rollout.steps_per_iteration:
        collected = collectors.whole.collect_round()
        choice = np.random.default_rng([config.seed, iteration, turn, run.process])
        whole = [t for t in collected.trajectories if t.failure is None]
        branched: list[Trajectory] = []
        if config.pairing in OF_WHOLE_EPISODES:
            candidates += _candidates(whole, config)
        elif config.pairing == "branch":
            chosen = _choose(whole, _most_branched(whole, config, run), choice)
            branched = _branch(chosen, collectors.branches, config, numbers, candidates)
        else:
            chosen = [_Root(t, int(choice.integers(len(t.steps)))) for t in whole]
            branched = _search(chosen, collectors.branches, config, numbers, candidates)
        everything.trajectories.extend([*collected.trajectories, *branched])
        everything.episodes.extend(collected.episodes)
        played = [len(t.steps) for t in (*collected.trajectories, *branched)]
        steps += sum(run.gather(played))
        turn += 1
    return Gathered(everything, _pairs(candidates, config), steps)


def _pairs(candidates: Sequence[Candidate], config: DPOConfig) -> list[Pair]:
    compared: Compared = config.pair_group if config.pairing == "trajectory" else "state"
    return make_pairs(
        candidates,
        margin=config.margin,
        most_per_group=config.pairs_per_state,
        compared=compared,
    )


def places(gathered: Gathered) -> list[PairPlace]:
    """Where the pairs' responses stand among the trajectories."""
    where = {
        id(step): (number, index)
        for number, trajectory in enumerate(gathered.collected.trajectories)
        for index, step in enumerate(trajectory.steps)
    }
    return [
        PairPlace(*(CompletionPlace(*where[id(side.step)], side.score) for side in pair))
        for pair in gathered.pairs
    ]


def stored_pairs(config: DPOConfig, run: Run) -> list[Pair]:
    """This process's part of the pairs in stored trajectories.

    Raises:
        ConfigError: there are none.
        StorageError: nothing is stored there, or it is damaged.
    """
    assert config.data is not None
    path = Path(config.data)
    whole = [t for t in read_shards(path) if t.failure is None and _can_be_judged(t, config)]
    pairs = _pairs(list(_candidates(whole, config)), config)
    if not pairs:
        where = "in the same state at the same step"
        if config.pairing == "trajectory":
            where = f"of one {config.pair_group.replace('_', ' ')} at the same step"
        raise ConfigError(
            f"data: {path} holds no two responses {where} of which one went better — expected "
            "several episodes of each start, a lower margin, or pair_group task_type"
        )
    # In one piece: all processes' pairs, in their order, are those of one process.
    first, stop = (len(pairs) * i // run.processes for i in (run.process, run.process + 1))
    return pairs[first:stop]


def _can_be_judged(trajectory: Trajectory, config: DPOConfig) -> bool:
    """Whether it came to its end, and, where a gain counts, at what progress it began: of the
    later part of an episode that is stored in pieces nobody knows."""
    if not trajectory.is_finished:
        return False
    is_later_part = trajectory.first_step > 0 and trajectory.steps[0].progress is not None
    return not (is_later_part and config.pair_reward == "progress_delta")


def _candidates(whole: Sequence[Trajectory], config: DPOConfig) -> Iterator[Candidate]:
    """Every step of these episodes, judged to the end."""
    for trajectory in whole:
        scores_T = trajectory_scores(trajectory, pair_reward=config.pair_reward, gamma=config.gamma)
        yield from candidates_of(trajectory, scores_T)


def _most_branched(whole: Sequence[Trajectory], config: DPOConfig, run: Run) -> int:
    """States of one round that are branched: as many as their branches fill the slots; with a
    horizon, as many as take as many steps as the round did."""
    if config.horizon is None:
        return max(1, config.rollout.num_envs // run.processes // (config.branches - 1))
    played = sum(len(trajectory.steps) for trajectory in whole)
    return max(1, played // ((config.branches - 1) * config.horizon))


def _choose(whole: Sequence[Trajectory], count: int, choice: np.random.Generator) -> list[_Root]:
    """States that were passed, drawn uniformly, none twice."""
    passed = [_Root(trajectory, at) for trajectory in whole for at in range(len(trajectory.steps))]
    return [passed[index] for index in sorted(choice.permutation(len(passed))[:count])]


def _branch(
    roots: Sequence[_Root],
    collector: Collector,
    config: DPOConfig,
    numbers: Iterator[int],
    candidates: list[Candidate],
) -> list[Trajectory]:
    """Responses again in these states, and plays each response as far as responses are judged."""
    starts = [
        Start(next(numbers), root.trajectory.seed, root.actions)
        for root in roots
        for _ in range(config.branches - 1)
    ]
    played = collector.collect_from(starts, horizon=config.horizon)
    candidates += [_candidate(root.trajectory, root.at, root.progress, config) for root in roots]
    for index, trajectory in enumerate(played):
        if trajectory.failure is None:
            root = roots[index // (config.branches - 1)]
            candidates.append(_candidate(trajectory, 0, root.progress, config))
    return played


def _candidate(trajectory: Trajectory, at: int, progress: float, config: DPOConfig) -> Candidate:
    """One step, judged as far as the settings say."""
    score = lookahead_score(
        trajectory,
        at=at,
        horizon=config.horizon or len(trajectory.steps),
        pair_reward=config.pair_reward,
        gamma=config.gamma,
        progress_before=progress,
    )
    return candidate_of(trajectory, at, score)


def _search(
    roots: Sequence[_Root],
    collector: Collector,
    config: DPOConfig,
    numbers: Iterator[int],
    candidates: list[Candidate],
) -> list[Trajectory]:
    """Grows a tree from each of these states, all of them one episode at a time."""
    trees = [
        SearchTree(
            root.trajectory,
            trajectory_scores(root.trajectory, pair_reward=config.pair_reward, gamma=config.gamma),
            at=root.at,
            prefix=root.actions,
            width=config.branches,
            exploration=config.exploration,
            gamma=config.gamma,
        )
        for root in roots
    ]
    everything: list[Trajectory] = []
    for _ in range(config.simulations):
        growing = [(tree, node) for tree in trees if (node := tree.select()) is not None]
        starts = [Start(next(numbers), tree.seed, node.actions) for tree, node in growing]
        played = collector.collect_from(starts)
        for (tree, node), trajectory in zip(growing, played, strict=True):
            known = trajectory.failure is None
            scores_T = _scores_from(trajectory, node.progress, config) if known else np.zeros(0)
            tree.add(trajectory, scores_T)
        everything += played
    candidates += chain.from_iterable(tree.candidates() for tree in trees)
    return everything


def _scores_from(trajectory: Trajectory, progress: float, config: DPOConfig) -> NDArray[np.float64]:
    return trajectory_scores(
        trajectory, pair_reward=config.pair_reward, gamma=config.gamma, progress_before=progress
    )


def _numbers(run: Run, iteration: int) -> Iterator[int]:
    """Numbers of episodes from the middle: unlike those of any other iteration or process, so that
    their responses are drawn apart."""
    first = _BRANCHES + (iteration << 28) + (run.process << 20)
    yield from range(first, first + (1 << 20))
