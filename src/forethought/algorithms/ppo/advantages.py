"""What PPO's steps were worth: as a critic has it, or beside other episodes."""

from collections.abc import Sequence

import numpy as np
import torch

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Sample, to_sample
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.value import explained_variance
from forethought.rollouts.collector import Collected
from forethought.targets.episode_advantages import (
    batch_normalized_advantages,
    episode_return,
    group_advantages,
    normalize_advantages,
)
from forethought.targets.returns import trajectory_advantages
from forethought.training.run import Run
from forethought.types import Metric

SMALLEST_DEVIATION = 0.01
"""Of returns, as a part of the largest: where all episodes end alike, what differs is the
critic's own error, which must not become the unit that it is measured in."""


def compute_advantages(collected: Collected, config: PPOConfig, run: Run) -> list[Sample]:
    """Advantages by GAE (truncation bootstraps, termination does not), then normalized
    over the whole iteration and all processes; or without a critic."""
    if not config.has_critic:
        return judge_by_episodes(collected, config, run)
    samples: list[Sample] = []
    for trajectory in collected.trajectories:
        if trajectory.failure is not None:
            continue
        estimated = trajectory_advantages(
            trajectory, gamma=config.gamma, gae_lambda=config.gae_lambda
        )
        samples += [
            to_sample(step, float(advantage), float(value_target))
            for step, advantage, value_target in zip(
                trajectory.steps, estimated.advantages_T, estimated.returns_T, strict=True
            )
        ]
    everyone = run.gather([sample.advantage for sample in samples])
    normalized = normalize_advantages(np.array(everyone))
    first = run.offset(len(samples))
    return [
        sample._replace(advantage=float(normalized[first + index]))
        for index, sample in enumerate(samples)
    ]


def judge_by_episodes(collected: Collected, config: PPOConfig, run: Run) -> list[Sample]:
    """Advantages of whole episodes against each other, in the scale that each estimator has.

    A group is within one process; REINFORCE++ compares the episodes of all.
    """
    trajectories = collected.trajectories
    assert config.advantage != "gae"
    if config.advantage == "reinforce_plus_plus":
        trajectories = [t for t in trajectories if t.failure is None]
        everyone_N = batch_normalized_advantages(
            returns_N=np.array(run.gather([episode_return(t) for t in trajectories])),
            steps_N=np.array(run.gather([float(len(t.steps)) for t in trajectories])),
        )
        first = run.offset(len(trajectories))
        advantages = [
            np.full(len(trajectory.steps), everyone_N[first + index])
            for index, trajectory in enumerate(trajectories)
        ]
    else:
        advantages = group_advantages(
            trajectories,
            estimator=config.advantage,
            gamma=config.gamma,
            step_weight=config.step_advantage_weight,
        )
    return [
        to_sample(step, float(advantage), value_target=0.0)
        for trajectory, advantages_T in zip(trajectories, advantages, strict=True)
        for step, advantage in zip(trajectory.steps, advantages_T, strict=True)
    ]


def rescale_critic(samples: Sequence[Sample], policy: HuggingFacePolicy, run: Run) -> None:
    """Gives the critic the scale of this iteration's returns, of all processes."""
    head = policy.module.value_head
    if head is None:
        return
    returns_N = np.array(run.gather([sample.value_target for sample in samples]))
    least = SMALLEST_DEVIATION * float(np.abs(returns_N).max())
    deviation = max(float(returns_N.std()), least) or float(head.deviation)
    head.rescale(float(returns_N.mean()), deviation)


def summarize_critic(samples: Sequence[Sample], run: Run) -> list[Metric]:
    """How much of the returns the critic foresaw, over all processes."""
    explained = explained_variance(
        values_B=torch.tensor(run.gather([sample.old_value for sample in samples])),
        returns_B=torch.tensor(run.gather([sample.value_target for sample in samples])),
        mask_B=None,
    )
    return [Metric("explained_variance", float(explained))]
