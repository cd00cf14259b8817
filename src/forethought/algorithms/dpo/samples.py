"""Pairs of responses as preference optimization learns from them: how they lie in tensors, and how
likely the reference finds them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.dpo.config import DPOConfig
from forethought.errors import OffPolicyError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.preference import Answers
from forethought.models.actor_critic import Scores
from forethought.models.batching import (
    ROW_TOKENS,
    Example,
    TokenBatch,
    build_batch,
    mark_in_window,
)
from forethought.models.encoding import Encoder
from forethought.offline.rows import stored_prompt
from forethought.prompts.responses import parse_response
from forethought.targets.pairs import Pair
from forethought.training.optim import Updater
from forethought.training.reference import Reference
from forethought.training.run import Run
from forethought.types import Completion, FinishReason, Step


class AnswerSample(NamedTuple):
    """One answer of a pair."""

    example: Example
    is_thought: list[bool]
    """Per completion token: before the `"action"` key?"""
    sampled_logprobs: list[float]
    """As recorded; empty where the ids are not those that were sampled."""
    reference_thoughts: float = 0.0
    """log π_ref(T|x), nats."""
    reference_action: float = 0.0
    """log π_ref(a|x, T), nats."""
    anchor_action: float = 0.0
    """The same under the model that APC holds to."""


class PairSample(NamedTuple):
    """Both answers of a pair."""

    winner: AnswerSample
    loser: AnswerSample


def to_pair_sample(pair: Pair, policy: HuggingFacePolicy) -> PairSample:
    """A pair of recorded steps as training data."""
    return PairSample(
        to_answer_sample(pair.winner.step, policy), to_answer_sample(pair.loser.step, policy)
    )


def to_answer_sample(step: Step, policy: HuggingFacePolicy) -> AnswerSample:
    """Ids and spans as they were sampled and parsed.

    The text is tokenized, and parsed anew, only where there are no ids (an expert wrote it),
    or where they are those of another tokenizer.
    """
    completion = step.completion
    prompt = stored_prompt(step, policy)
    if completion.token_ids and prompt.token_ids == step.prompt.token_ids:
        ids, split = completion.token_ids, step.action.thought_span.stop
        logprobs, allowed = list(completion.logprobs), completion.allowed_ids
    else:
        allowed = ()
        ids, logprobs = policy.encoder.tokenize_answer(completion.text), []
        split = parse_response(_read_back(ids, policy.encoder), None).thought_span.stop
    policy.encoder.limits.require_prompt(
        len(prompt.token_ids) + len(ids) - 1, "the prompt with all but the end of its answer"
    )
    is_thought = [index < split for index in range(len(ids))]
    return AnswerSample(Example(prompt, ids, allowed), is_thought, logprobs)


def _read_back(ids: tuple[int, ...], encoder: Encoder) -> Completion:
    """Written ids as if they had been sampled, to find where the action begins in them."""
    text, offsets = encoder.detokenize(ids)
    return Completion(ids, (0.0,) * len(ids), offsets, text, FinishReason.STOP, 1.0)


def plan_pairs(pairs: Sequence[PairSample], max_tokens: int) -> list[list[int]]:
    """Splits pairs into micro-batches of at most `max_tokens`, padding included.

    The two answers of a pair stay together, for the loss compares them; pairs of like width
    meet. A pair that is wider alone has a micro-batch of its own.
    """
    shapes = [_shape(pair) for pair in pairs]
    micro_batches: list[list[int]] = []
    rows = 0
    for index in sorted(range(len(pairs)), key=lambda i: (shapes[i].width, i)):
        # Sorted: this pair is the widest so far, so it sets the padded width.
        rows += shapes[index].rows
        if micro_batches and rows * shapes[index].width <= max_tokens:
            micro_batches[-1].append(index)
        else:
            micro_batches.append([index])
            rows = shapes[index].rows
    return micro_batches


class _Shape(NamedTuple):
    rows: int
    width: int


def _shape(pair: PairSample) -> _Shape:
    """Answers to one prompt share a row, where they fit into one."""
    winner, loser = (side.example for side in pair)
    together = winner.length + len(loser.completion_ids)
    if winner.prompt.key == loser.prompt.key and together <= ROW_TOKENS:
        return _Shape(1, together)
    return _Shape(2, max(winner.length, loser.length))


class PairTokens(NamedTuple):
    """Pairs in one forward pass; every answer is one of its B completions."""

    tokens: TokenBatch
    thought_mask_BT: Tensor
    winners_P: Tensor
    """Which of the B completions is each pair's winner, int64."""
    losers_P: Tensor
    references: tuple[Tensor, Tensor, Tensor, Tensor]
    """[P] each: of winners, thoughts and action; of losers, thoughts and action."""
    anchors_B: Tensor
    """log p(a|x, T) of every completion under the model that APC holds to."""


def lay_out_pairs(
    pairs: Sequence[PairSample], encoder: Encoder, device: torch.device
) -> PairTokens:
    """The tensors of one micro-batch, on the device."""
    answers = [side for pair in pairs for side in pair]
    rows: list[list[Example]] = []
    for winner, loser in pairs:
        if _shape(PairSample(winner, loser)).rows == 1:
            rows.append([winner.example, loser.example])
        else:
            rows += [[winner.example], [loser.example]]
    tokens = build_batch(rows, encoder)
    thoughts_BT = mark_in_window(tokens, [answer.is_thought for answer in answers])
    winners_P = torch.arange(0, 2 * len(pairs), 2)
    references = tuple(
        torch.tensor(numbers, device=device)
        for side in zip(*pairs, strict=True)
        for numbers in (
            [answer.reference_thoughts for answer in side],
            [answer.reference_action for answer in side],
        )
    )
    assert len(references) == 4
    return PairTokens(
        tokens.to(device),
        thoughts_BT.to(device),
        winners_P.to(device),
        winners_P.to(device) + 1,
        references,
        torch.tensor([answer.anchor_action for answer in answers], device=device),
    )


def answers_of(scores: Scores, pairs: PairTokens) -> tuple[Answers, Answers]:
    """Winners and losers, as objectives take them."""
    mask_BT = pairs.tokens.mask_BT
    thought_BT = pairs.thought_mask_BT & mask_BT
    action_BT = ~pairs.thought_mask_BT & mask_BT
    thoughts_B = torch.where(thought_BT, scores.logprobs_BT, 0.0).sum(1)
    action_B = torch.where(action_BT, scores.logprobs_BT, 0.0).sum(1)
    winners, losers = (
        Answers(
            thoughts_P=thoughts_B[side_P],
            action_P=action_B[side_P],
            reference_thoughts_P=pairs.references[first],
            reference_action_P=pairs.references[first + 1],
            thought_tokens_P=thought_BT.sum(1)[side_P],
            action_tokens_P=action_BT.sum(1)[side_P],
        )
        for side_P, first in ((pairs.winners_P, 0), (pairs.losers_P, 2))
    )
    return winners, losers


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
        temperature = context.config.rollout.sampling.temperature
        scores: Scores = context.updater.module(layout.tokens, temperature=temperature)
    return scores
