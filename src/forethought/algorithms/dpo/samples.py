"""Pairs of answers as preference optimization learns from them, and how they lie in tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

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
from forethought.prompts.answers import parse_answer
from forethought.targets.pairs import Pair
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
        split = parse_answer(_read_back(ids, policy.encoder), None).thought_span.stop
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
