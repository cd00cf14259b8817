"""The responses of an iteration's pairs under the reference, before the first update."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.samples import (
    PairSample,
    PairTokens,
    answers_of,
    lay_out_pairs,
    plan_pairs,
    to_pair_sample,
)
from forethought.errors import OffPolicyError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.actor_critic import Scores
from forethought.targets.pairs import Pair
from forethought.training.optim import Updater
from forethought.training.reference import Reference
from forethought.training.run import Run

RATIO_TOLERANCE = 1e-3
"""In fp32, before the first update of an iteration, every token's ratio is 1 within this."""


class DPOContext(NamedTuple):
    """What every part of an iteration works with."""

    policy: HuggingFacePolicy
    updater: Updater
    reference: Reference
    anchor: Reference
    """What APC holds to: the reference, or the model that the run started from."""
    config: DPOConfig
    run: Run


class Known(NamedTuple):
    """Of an iteration's pairs, before the first update."""

    samples: list[PairSample]
    deviation: float
    """Largest |ratio - 1| between sampled and recomputed."""
    reference_point: float
    """KTO's: the mean log-ratio of the answers, nats, at least 0."""


def ask_reference(pairs: Sequence[Pair], context: DPOContext) -> Known:
    """Scores the answers as the reference would have given them, and as the policy did.

    Raises:
        OffPolicyError: the policy's own log-probs in fp32 are not those that were sampled:
            prompt, image, ids or weights are not those of the rollout.
    """
    policy, _, reference, anchor, config, run = context
    samples = [to_pair_sample(pair, policy) for pair in pairs]
    policy.module.eval()
    largest, ratios = 0.0, 0.0
    for indices in plan_pairs(samples, config.compute.micro_batch_tokens):
        chosen = [samples[index] for index in indices]
        layout = lay_out_pairs(chosen, policy.encoder, policy.device)
        own = scores_of(layout, context)
        with reference.in_place():
            theirs = scores_of(layout, context)
        held = theirs
        if anchor is not reference:
            with anchor.in_place():
                held = scores_of(layout, context)
        if config.data is None:
            largest = max(largest, deviation(own, layout.tokens.mask_BT, chosen))
        sides = [answers_of(scores, layout) for scores in (own, theirs, held)]
        ratios += sum(
            float((mine.logprobs - other.logprobs).sum())
            for mine, other in zip(*sides[:2], strict=True)
        )
        for position, index in enumerate(indices):
            samples[index] = PairSample(
                *(
                    sample._replace(
                        reference_thoughts=float(answers.thoughts_P[position]),
                        reference_action=float(answers.action_P[position]),
                        anchor_action=float(start.action_P[position]),
                    )
                    for sample, answers, start in zip(samples[index], *sides[1:], strict=True)
                )
            )
    largest = max(run.gather([largest]))
    if config.compute.precision == "fp32" and largest > RATIO_TOLERANCE:
        raise OffPolicyError(
            f"before the first update a ratio is off 1 by {largest:.2g} — expected at most "
            f"{RATIO_TOLERANCE:g}: the recomputed log-probs are not those that were sampled"
        )
    count = 2 * sum(run.gather([len(samples)]))
    return Known(samples, largest, max(0.0, sum(run.gather([ratios])) / max(count, 1)))


def deviation(scores: Scores, mask_BT: Tensor, pairs: Sequence[PairSample]) -> float:
    """The largest |ratio - 1| of a token, between its log-probs now and as sampled."""
    sampled = [answer.sampled_logprobs for pair in pairs for answer in pair]
    flat = torch.tensor([logprob for row in sampled for logprob in row])
    return float((scores.logprobs_BT[mask_BT].cpu() - flat).expm1().abs().max())


def scores_of(layout: PairTokens, context: DPOContext) -> Scores:
    """What the model in place gives the responses, without gradient."""
    with torch.no_grad(), context.run.autocast():
        temperature = context.config.rollout.temperature
        scores: Scores = context.updater.module(layout.tokens, temperature=temperature)
    return scores
