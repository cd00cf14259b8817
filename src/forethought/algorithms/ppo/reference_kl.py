"""How far sampled answers are from the model that a run started from."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import torch

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Sample, lay_out, plan
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.actor_critic import Scores
from forethought.training.optim import Updater
from forethought.training.reference import Reference
from forethought.training.run import Run
from forethought.types import Step, Trajectory


def reference_logprobs(
    samples: Sequence[Sample],
    policy: HuggingFacePolicy,
    updater: Updater,
    reference: Reference,
    config: PPOConfig,
    run: Run,
) -> list[list[float]]:
    """Log-probs of every sample's answer under the reference, per token, nats, at the
    temperature of the rollout; in the order of the samples."""
    found: list[list[float]] = [[] for _ in samples]
    policy.module.eval()
    with torch.no_grad(), reference.in_place(), run.autocast():
        for rows in plan(samples, config.compute.micro_batch_tokens):
            tokens, _ = lay_out(samples, rows, policy.encoder, policy.device)
            scores: Scores = updater.module(tokens, temperature=config.rollout.temperature)
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
    """Every step's reward, less what its answer's distance from the reference costs.

        r' = r - c sum_t (log pi(y_t) - log pi_ref(y_t))

    Ouyang et al. 2022, InstructGPT, Eq. 2, per environment step. The sum is an unbiased
    estimate of the divergence of the two distributions over answers, and may be negative.

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
