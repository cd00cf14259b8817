"""Chance and expert, beside which a policy is judged."""

from dataclasses import replace

import numpy as np

from forethought.configs.parts import ResponseFormat
from forethought.evaluation.results import EvaluationRow, summarize
from forethought.evaluation.thought_rates import ThoughtRates
from forethought.rollouts.scripted import Answer, expert_answer, play, random_answer
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.task import Task
from forethought.types import Trajectory

BOOTSTRAP_SEED = 0
"""Intervals of equal results are equal."""


class ScriptedRows:
    """The rows of those who play without a model, on held-out episodes.

    They are the same whoever is judged beside them: one of these, kept while many are
    judged, plays each row once.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], EvaluationRow] = {}

    def random(self, world: Task, episodes: int, *, seed: int) -> EvaluationRow:
        """Actions drawn uniformly. It has no thoughts that could be true.

        Args:
            seed: of the draws.
        """
        return self._row("random", world, episodes, seed, random_answer(seed))

    def expert(self, world: Task, episodes: int, response_format: ResponseFormat) -> EvaluationRow:
        """The environment's own expert; a row without numbers where it has none."""
        if not world.has_expert:
            return EvaluationRow("expert")
        return self._row("expert", world, episodes, response_format, expert_answer(response_format))

    def _row(
        self, name: str, world: Task, episodes: int, manner: object, answer: Answer
    ) -> EvaluationRow:
        key = (name, world.id, world.options, episodes, manner)
        if key not in self._rows:
            row = _played(name, world, episodes, answer)
            thinks = name != "random"
            self._rows[key] = row if thinks else replace(row, thoughts=ThoughtRates())
        return self._rows[key]


def row_of(name: str, trajectories: list[Trajectory]) -> EvaluationRow:
    """One row of a table, with intervals."""
    return summarize(name, trajectories, np.random.default_rng(BOOTSTRAP_SEED))


def _played(name: str, world: Task, episodes: int, answer: Answer) -> EvaluationRow:
    seeds = (episode_seed(Split.EVALUATION, 0, index) for index in range(episodes))
    return row_of(name, list(play(world.id, world.factory, world.prompter, answer, seeds)))
