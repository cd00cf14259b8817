"""The steps of an iteration as PPO learns from them: their advantages, how likely the reference
finds them, and how they lie in tensors."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forethought.algorithms.ppo.config import PPOConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.ppo import explained_variance
from forethought.models.actor_critic import Scores
from forethought.models.batching import (
    Example,
    Rows,
    TokenBatch,
    build_batch,
    mark_in_window,
    place_in_window,
    plan_rows,
)
from forethought.models.encoding import Encoder
from forethought.rollouts.collector import Collected
from forethought.targets.episode_advantages import (
    batch_normalized_advantages,
    episode_return,
    group_advantages,
    normalize_advantages,
)
from forethought.targets.returns import trajectory_advantages
from forethought.training.optim import Updater
from forethought.training.reference import Reference
from forethought.training.run import Run
from forethought.types import Metric, Step, Trajectory


class Sample(NamedTuple):
    """One environment step as PPO learns from it."""

    example: Example
    is_thought: list[bool]
    """Per completion token: before the `"action"` key?"""
    old_logprobs: list[float]
    old_value: float
    """The critic's; 0 where there is none, as its target."""
    advantage: float
    value_target: float
    """GAE's estimate of the discounted return."""
    reference_logprobs: list[float]
    """Under the model that the run started from; as sampled where none is kept."""
    importance: list[float]
    """Weight of each completion token, or of all of them together: 1 where the samples are the
    trainer's own."""


def to_sample(step: Step, advantage: float, value_target: float) -> Sample:
    """Ids and spans as they were sampled and parsed; nothing is tokenized again."""
    completion, split = step.completion, step.action.thought_span.stop
    return Sample(
        example=Example(step.prompt, completion.token_ids, completion.allowed_ids),
        is_thought=[index < split for index in range(len(completion.token_ids))],
        old_logprobs=list(completion.logprobs),
        old_value=0.0 if step.value is None else step.value,
        advantage=advantage,
        value_target=value_target,
        reference_logprobs=list(completion.logprobs),
        importance=[1.0] * len(completion.token_ids),
    )


class Old(NamedTuple):
    """What was known before the update, in the layout of a `TokenBatch`."""

    logprobs_BT: Tensor
    thought_mask_BT: Tensor
    values_B: Tensor
    advantages_B: Tensor
    value_targets_B: Tensor
    reference_logprobs_BT: Tensor
    importance_BT: Tensor
    """0 where there is no token."""


def plan(samples: Sequence[Sample], micro_batch_tokens: int) -> list[Rows]:
    """Micro-batches of rows; steps taken in equal states share a row."""
    return plan_rows([sample.example for sample in samples], micro_batch_tokens)


def lay_out(
    samples: Sequence[Sample], rows: Rows, encoder: Encoder, device: torch.device
) -> tuple[TokenBatch, Old]:
    """The tensors of one micro-batch, on the device."""
    examples = [[samples[index].example for index in row] for row in rows]
    tokens = build_batch(examples, encoder)
    chosen = [samples[index] for row in rows for index in row]
    old = Old(
        place_in_window(tokens, [sample.old_logprobs for sample in chosen]),
        mark_in_window(tokens, [sample.is_thought for sample in chosen]),
        torch.tensor([sample.old_value for sample in chosen]),
        torch.tensor([sample.advantage for sample in chosen]),
        torch.tensor([sample.value_target for sample in chosen]),
        place_in_window(tokens, [sample.reference_logprobs for sample in chosen]),
        place_in_window(tokens, [sample.importance for sample in chosen]),
    )
    return tokens.to(device), Old(*(tensor.to(device) for tensor in old))


SMALLEST_DEVIATION = 0.01
"""Floor of the standard deviation of returns, as a part of the largest: where all episodes end
alike, what differs is the critic's own error, which must not become the unit that it is measured
in."""


def compute_advantages(collected: Collected, config: PPOConfig, run: Run) -> list[Sample]:
    """Advantages by GAE (truncation bootstraps, termination does not), then normalized
    over the whole iteration and all processes; or without a critic."""
    if not config.has_critic:
        return compute_episode_advantages(collected, config, run)
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


def compute_episode_advantages(collected: Collected, config: PPOConfig, run: Run) -> list[Sample]:
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


def reference_logprobs(
    samples: Sequence[Sample],
    policy: HuggingFacePolicy,
    updater: Updater,
    reference: Reference,
    config: PPOConfig,
    run: Run,
) -> list[list[float]]:
    """Log-probs of every sample's response under the reference, per token, nats, at the
    temperature of the rollout; in the order of the samples."""
    found: list[list[float]] = [[] for _ in samples]
    policy.module.eval()
    with torch.no_grad(), reference.in_place(), run.autocast():
        for rows in plan(samples, config.compute.micro_batch_tokens):
            tokens, _ = lay_out(samples, rows, policy.encoder, policy.device)
            scores: Scores = updater.module(tokens, temperature=config.rollout.sampling.temperature)
            for position, index in enumerate(chain.from_iterable(rows)):
                found[index] = scores.logprobs_BT[position][tokens.mask_BT[position]].tolist()
    return found


def with_ref_logprobs(
    samples: list[Sample], ref_logprobs: list[list[float]] | None
) -> list[Sample]:
    """With a reference, the samples with its log-probs, for the loss and for the log."""
    if ref_logprobs is None:
        return samples
    return [
        sample._replace(reference_logprobs=logprobs)
        for sample, logprobs in zip(samples, ref_logprobs, strict=True)
    ]


def penalized(
    trajectories: Sequence[Trajectory],
    reference_logprobs: Sequence[Sequence[float]],
    coefficient: float,
) -> list[Trajectory]:
    """Every step's reward, less what its response's distance from the reference costs.

        r' = r - c sum_t (log pi(y_t) - log pi_ref(y_t))

    Ouyang et al. 2022, InstructGPT, Eq. 2, per environment step. The sum is an unbiased
    estimate of the divergence of the two distributions over responses, and may be negative.

    Args:
        reference_logprobs: one list per step, in the order of trajectories and steps.
        coefficient: c, reward per nat.
    """
    remaining = iter(reference_logprobs)
    charged: list[Trajectory] = []
    for trajectory in trajectories:
        steps = [_charged(step, next(remaining), coefficient) for step in trajectory.steps]
        charged.append(replace(trajectory, steps=tuple(steps)))
    return charged


def _charged(step: Step, reference_T: Sequence[float], coefficient: float) -> Step:
    distance = sum(step.completion.logprobs) - sum(reference_T)
    return replace(step, reward=step.reward - coefficient * distance)
