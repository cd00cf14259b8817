"""Chance and expert are played once per environment, however many policies stand beside them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.environments.cards.number_line import NumberLine
from forethought.environments.contract import Environment
from forethought.evaluation.evaluate import ScriptedRows
from forethought.rollouts import task as environments
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.task import Task, open_task
from forethought.types import Observation


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the environments that were made, in this order."""
    names: list[str] = []
    make: Callable[..., Environment] = environments.make_environment

    def counted(name: str, **options: str | int | float | bool) -> Environment:
        names.append(name)
        return make(name, **options)

    monkeypatch.setattr(environments, "make_environment", counted)
    return names


def number_line(*options: str) -> Task:
    config = EnvironmentConfig(id="NumberLine", options=options)
    return open_task(config, PromptConfig(), default_image_size=64)


def test_a_second_policy_finds_the_rows_of_the_first(made: list[str]) -> None:
    rows = ScriptedRows()
    chance, expert = (
        rows.random(number_line(), 20, seed=0),
        rows.expert(number_line(), 20, "thoughts"),
    )
    before = len(made)
    assert rows.random(number_line(), 20, seed=0) is chance
    assert rows.expert(number_line(), 20, "thoughts") is expert
    assert len(made) == before + 2, "two environments were opened, none was played"
    assert chance.episodes == expert.episodes == 20
    assert chance.success_rate != expert.success_rate


def test_another_environment_or_another_number_of_episodes_is_played() -> None:
    rows = ScriptedRows()
    chance = rows.random(number_line(), 20, seed=0)
    assert rows.random(number_line(), 10, seed=0).episodes == 10
    assert rows.random(number_line(), 20, seed=1) is not chance
    assert rows.random(number_line("max_position=9"), 20, seed=0) is not chance


class FrailNumberLine(NumberLine):
    """Cannot play the third held-out episode."""

    def reset(self, seed: int) -> Observation:
        if seed == episode_seed(Split.EVALUATION, 0, 2):
            raise OSError("no such device")
        return super().reset(seed)


def test_what_an_environment_raises_costs_an_episode_and_no_evaluation() -> None:
    """Chance and expert play behind the policy, whose hours are not to be lost by it."""
    frail = replace(number_line(), factory=FrailNumberLine)
    for row in (
        ScriptedRows().random(frail, 20, seed=0),
        ScriptedRows().expert(frail, 20, "thoughts"),
    ):
        assert (row.episodes, row.failures) == (19, 1)
