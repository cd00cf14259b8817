"""Which episodes PPO gathers, what their steps are worth without a critic, and a critic's scale."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Sample, compute_episode_advantages, rescale_critic
from forethought.algorithms.ppo.train import collect
from forethought.configs.parts import RolloutConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.actor_critic import ValueHead
from forethought.rollouts.collector import Collected
from forethought.training.run import Run
from forethought.types import EnvironmentFailure, Trajectory
from tests.unit.targets.builders import Did, trajectory


class SecondOfTwo:
    """A run in the second of two processes."""

    process, processes = 1, 2

    def __init__(self, *first: list[Any]) -> None:
        """
        Args:
            first: what the first process gives, each time that both are asked.
        """
        self._first = list(first)

    def gather(self, items: list[Any]) -> list[Any]:
        return self._first.pop(0) + items

    def offset(self, count: int) -> int:
        return sum(self.gather([count])[: self.process])


class Alone:
    """A run in one process."""

    def gather(self, items: list[Any]) -> list[Any]:
        return items


class Rounds:
    """A collector of which each round is one episode of two steps."""

    def __init__(self) -> None:
        self.played = 0

    def collect_round(self) -> Collected:
        self.played += 1
        return Collected([episode(0.0, 0.0)], [])


def episode(*rewards: float) -> Trajectory:
    """Through the states a, b, c."""
    return trajectory(
        *(Did("+", state, reward) for state, reward in zip("abc", rewards, strict=False))
    )


CRASHED = replace(episode(0.0), steps=(), failure=EnvironmentFailure.CRASH)


def samples(run: object, config: PPOConfig, *episodes: Trajectory) -> list[float]:
    """Of every step, one after the other."""
    samples = compute_episode_advantages(Collected(list(episodes), []), config, cast(Run, run))
    assert all(sample.value_target == 0.0 for sample in samples)
    return [sample.advantage for sample in samples]


def test_one_scale_for_the_episodes_of_all_processes() -> None:
    """Returns 1, 1 there and 5, with two steps, here: mean 3, deviation 2. A crash is none."""
    config = PPOConfig(advantage="reinforce_plus_plus")
    run = SecondOfTwo([1.0, 1.0], [1.0, 1.0], [2])
    assert samples(run, config, CRASHED, episode(1.0, 4.0)) == [pytest.approx(1.0)] * 2


def test_a_group_is_judged_with_the_settings() -> None:
    """GiGPO, γ = 0.1, ω = 3. Returns 5 and 2: A^E = ±1. Both start in a, to go 1 + 0.1 · 4 = 1.4
    and 2: A^S = ∓1; in b there is nobody to compare with."""
    config = PPOConfig(advantage="gigpo", group_size=2, gamma=0.1, step_advantage_weight=3.0)
    found = samples(Alone(), config, episode(1.0, 4.0), CRASHED, episode(2.0))
    assert found == [pytest.approx(one) for one in (-2.0, 1.0, 2.0)]


def test_rounds_are_played_until_all_processes_together_have_the_steps() -> None:
    """Eight are wanted; a round has two here and three there."""
    config = PPOConfig(
        advantage="reinforce_plus_plus",
        total_steps=8,
        batch_size=8,
        rollout=RolloutConfig(num_envs=2, steps_per_iteration=8),
    )
    rounds = Rounds()
    collected = collect(cast(Any, rounds), config, cast(Run, SecondOfTwo([3], [3])))
    assert rounds.played == len(collected.trajectories) == 2


@pytest.mark.parametrize(
    ("returns", "mean", "deviation"),
    [
        ([0.0, 4.0, 8.0, 8.0], 5.0, 11.0**0.5),
        ([10.0, 10.0, 10.0], 10.0, 0.1),  # a hundredth of the largest
        ([-10.0, -10.0, -10.0], -10.0, 0.1),
        ([0.0, 0.0], 0.0, 1.0),  # nothing to go by: as it was
    ],
    ids=["spread", "equal", "equal and negative", "all zero"],
)
def test_the_critics_scale_is_that_of_the_returns(
    returns: list[float], mean: float, deviation: float
) -> None:
    head = ValueHead(4, generator=torch.Generator().manual_seed(0))
    policy = SimpleNamespace(module=SimpleNamespace(value_head=head))
    samples = [SimpleNamespace(value_target=number) for number in returns]
    rescale_critic(cast(list[Sample], samples), cast(HuggingFacePolicy, policy), cast(Run, Alone()))
    assert head.mean.item() == pytest.approx(mean)
    assert head.deviation.item() == pytest.approx(deviation)
