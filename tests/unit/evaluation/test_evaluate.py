"""A policy on held-out episodes: none is counted twice; settings that cannot be are refused."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import pytest

from forethought.configs.parts import EnvironmentConfig, PromptConfig, SamplingConfig
from forethought.environments.bandit import Bandit
from forethought.errors import ConfigError
from forethought.evaluation.evaluate import EvaluationSettings, play_policy
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.rollouts.seeding import Split
from forethought.rollouts.task import Task, open_task
from forethought.types import Completion, FinishReason, Message, Prompt


class FiveBandits(Bandit):
    """Its held-out seeds go through five episodes."""

    held_out_episodes = 5


class Constant:
    """Answers always alike."""

    version = 0

    def __init__(self) -> None:
        self._asked: list[GenerationRequest] = []

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return Prompt(tuple(messages), ())

    def submit(self, request: GenerationRequest) -> None:
        self._asked.append(request)

    def advance(self) -> list[GenerationResult]:
        said = Completion((), (), (), '{"action": "a"}', FinishReason.STOP, 0.0)
        asked, self._asked = self._asked, []
        return [GenerationResult(request.key, said, None) for request in asked]


def five_bandits() -> Task:
    config = EnvironmentConfig(f"{__name__}:{FiveBandits.__name__}")
    return open_task(config, PromptConfig(), default_image_size=None)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_more_episodes_than_there_are_different_ones(temperature: float) -> None:
    """By sampling, too: the expert would play the same again, and the game's luck counts twice."""
    environment = five_bandits()
    settings = EvaluationSettings(5, sampling=SamplingConfig(temperature=temperature))
    assert len(play_policy(Constant(), environment, settings)) == 5
    with pytest.raises(ConfigError) as refused:
        play_policy(Constant(), environment, replace(settings, episodes=6))
    assert str(refused.value) == (
        f"episodes is 6 — expected 5 at most: {environment.id} has no more different held-out ones"
    )


def test_episodes_that_are_not_held_out_are_drawn_and_so_are_those_of_other_environments() -> None:
    settings = EvaluationSettings(6)
    environment = five_bandits()
    assert len(play_policy(Constant(), environment, settings, split=Split.TRAINING)) == 6
    assert len(play_policy(Constant(), replace(environment, held_out_episodes=None), settings)) == 6


def test_it_is_refused_before_anything_is_played() -> None:
    def played() -> NoReturn:
        raise AssertionError

    environment = replace(five_bandits(), factory=played)
    with pytest.raises(ConfigError, match="episodes is 6"):
        play_policy(Constant(), environment, EvaluationSettings(6))


@pytest.mark.parametrize("seed", [-1, 2**31])
def test_a_seed_that_no_answer_can_have(seed: int) -> None:
    with pytest.raises(ConfigError, match=f"seed is {seed} — expected 0 to 2147483647"):
        EvaluationSettings(seed=seed)
