"""Pairs of responses as preference optimization learns from them: how they lie in tensors, and how
likely the reference finds them."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.dpo.config import DPOConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.preference import Responses
from forethought.models.actor_critic import Scores
from forethought.models.batching import (
    ROW_TOKENS,
    Example,
    TokenBatch,
    build_batch,
    mark_in_window,
    plan_rows,
    rows_by_prompt,
)
from forethought.models.encoding import Encoder
from forethought.offline.rows import stored_prompt
from forethought.prompts.responses import parse_response
from forethought.targets.pairs import Pair
from forethought.training.engines import measure_mismatch, require_on_policy
from forethought.training.optim import Updater
from forethought.training.reference import Reference
from forethought.training.run import Run
from forethought.types import Completion, FinishReason, Metric, Step


class ResponseSample(NamedTuple):
    """One response of a pair."""

    example: Example
    is_thought: list[bool]
    """Per completion token: before the `"action"` key?"""
    sampled_logprobs: list[float]
    """As recorded; empty where the ids are not those that were sampled."""
    score: float = 0.0
    """How well the episode went from there on, in the unit of `pair_reward`."""
    reference_thoughts: float = 0.0
    """log π_ref(T|x), nats."""
    reference_action: float = 0.0
    """log π_ref(a|x, T), nats."""
    apc_action: float = 0.0
    """The same under the model that APC holds to."""

    @property
    def key(self) -> tuple[bytes, tuple[int, ...], tuple[tuple[int, ...] | None, ...]]:
        """Equal for equal responses to equal prompts, whose log-probs are equal."""
        example = self.example
        return example.prompt.key, example.completion_ids, example.allowed_ids


class PairSample(NamedTuple):
    """Both responses of a pair."""

    chosen: ResponseSample
    rejected: ResponseSample


def to_pair_samples(pairs: Sequence[Pair], policy: HuggingFacePolicy) -> list[PairSample]:
    """Pairs of recorded steps as training data; a step is read once, whatever pairs it is in."""
    steps = {id(side.step): side.step for pair in pairs for side in pair}
    responses = {key: to_response_sample(step, policy) for key, step in steps.items()}
    return [
        PairSample(*(responses[id(side.step)]._replace(score=side.score) for side in pair))
        for pair in pairs
    ]


def to_response_sample(step: Step, policy: HuggingFacePolicy) -> ResponseSample:
    """Ids and spans as they were sampled and parsed.

    The text is tokenized, and parsed again, only where there are no ids (an expert wrote it),
    or where they are those of another tokenizer.
    """
    completion = step.completion
    prompt = stored_prompt(step, policy)
    if completion.token_ids and prompt.token_ids == step.prompt.token_ids:
        ids, split = completion.token_ids, step.action.thought_span.stop
        logprobs, allowed = list(completion.logprobs), completion.allowed_ids
    else:
        allowed = ()
        ids, logprobs = policy.encoder.tokenize_response(completion.text), []
        split = parse_response(_read_back(ids, policy.encoder), None).thought_span.stop
    policy.encoder.limits.require_prompt(
        len(prompt.token_ids) + len(ids) - 1, "the prompt with all but the end of its answer"
    )
    is_thought = [index < split for index in range(len(ids))]
    return ResponseSample(Example(prompt, ids, allowed), is_thought, logprobs)


def _read_back(ids: tuple[int, ...], encoder: Encoder) -> Completion:
    """Written ids as if they had been sampled, to find where the action begins in them."""
    text, offsets = encoder.detokenize(ids)
    return Completion(ids, (0.0,) * len(ids), offsets, text, FinishReason.STOP, 1.0)


def plan_pairs(pairs: Sequence[PairSample], max_tokens: int) -> list[list[int]]:
    """Splits pairs into micro-batches of at most `max_tokens`, padding included.

    The two responses of a pair stay together, for the loss compares them; pairs of similar length
    meet. A pair that is wider alone has a micro-batch of its own.
    """
    longest = [max(side.example.length for side in pair) for pair in pairs]
    micro_batches: list[list[int]] = []
    for index in sorted(range(len(pairs)), key=lambda i: (longest[i], i)):
        joined = [*micro_batches[-1], index] if micro_batches else []
        if joined and _tokens([pairs[i] for i in joined]) <= max_tokens:
            micro_batches[-1].append(index)
        else:
            micro_batches.append([index])
    return micro_batches


def _tokens(pairs: Sequence[PairSample]) -> int:
    """Tokens of these pairs in one forward pass, padding included."""
    rows = _rows(distinct_completions(pairs))
    lengths = [row[0].example.length - len(row[0].example.completion_ids) for row in rows]
    ends = [sum(len(response.example.completion_ids) for response in row) for row in rows]
    return len(rows) * max(map(sum, zip(lengths, ends, strict=True)))


def distinct_completions(pairs: Sequence[PairSample]) -> list[ResponseSample]:
    """Each response to each prompt once, however many pairs it is in."""
    return list({response.key: response for pair in pairs for response in pair}.values())


def _rows(responses: Sequence[ResponseSample]) -> list[list[ResponseSample]]:
    """Responses to one prompt share a row, of at most twice the width of the widest alone: so
    much is padding at most."""
    examples = [response.example for response in responses]
    widest = 2 * max(example.length for example in examples)
    rows = rows_by_prompt(examples, min(widest, ROW_TOKENS))
    return [[responses[index] for index in row] for row in rows]


class PairTokens(NamedTuple):
    """Pairs in one forward pass, every response of theirs once, as one of its B completions."""

    tokens: TokenBatch
    thought_mask_BT: Tensor
    chosen_P: Tensor
    """Which of the B completions is each pair's chosen response, int64."""
    rejected_P: Tensor
    references: tuple[Tensor, Tensor, Tensor, Tensor]
    """[P] each: of chosen responses, thoughts and action; of rejected ones, thoughts and action."""
    apc_action_B: Tensor
    """log p(a|x, T) of every completion under the model that APC holds to."""
    score_gaps_P: Tensor
    """By how much the chosen response's score is higher than the rejected one's."""


def lay_out_pairs(
    pairs: Sequence[PairSample], encoder: Encoder, device: torch.device
) -> PairTokens:
    """The tensors of one micro-batch, on the device."""
    rows = _rows(distinct_completions(pairs))
    responses = [response for row in rows for response in row]
    places = {response.key: place for place, response in enumerate(responses)}
    tokens = build_batch([[response.example for response in row] for row in rows], encoder)
    thoughts_BT = mark_in_window(tokens, [response.is_thought for response in responses])
    references = tuple(
        torch.tensor(numbers, device=device)
        for side in zip(*pairs, strict=True)
        for numbers in (
            [response.reference_thoughts for response in side],
            [response.reference_action for response in side],
        )
    )
    assert len(references) == 4
    return PairTokens(
        tokens.to(device),
        thoughts_BT.to(device),
        torch.tensor([places[pair.chosen.key] for pair in pairs], device=device),
        torch.tensor([places[pair.rejected.key] for pair in pairs], device=device),
        references,
        torch.tensor([response.apc_action for response in responses], device=device),
        torch.tensor([pair.chosen.score - pair.rejected.score for pair in pairs], device=device),
    )


def responses_of(scores: Scores, pairs: PairTokens) -> tuple[Responses, Responses]:
    """Chosen and rejected responses, as objectives take them."""
    mask_BT = pairs.tokens.mask_BT
    thought_BT = pairs.thought_mask_BT & mask_BT
    action_BT = ~pairs.thought_mask_BT & mask_BT
    thoughts_B, action_B = sums_of(scores, pairs.thought_mask_BT, mask_BT)
    chosen, rejected = (
        Responses(
            thoughts_P=thoughts_B[side_P],
            action_P=action_B[side_P],
            reference_thoughts_P=pairs.references[first],
            reference_action_P=pairs.references[first + 1],
            thought_tokens_P=thought_BT.sum(1)[side_P],
            action_tokens_P=action_BT.sum(1)[side_P],
        )
        for side_P, first in ((pairs.chosen_P, 0), (pairs.rejected_P, 2))
    )
    return chosen, rejected


def sums_of(scores: Scores, thought_mask_BT: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor]:
    """log π(T|x) and log π(a|x, T) of every completion [B], nats."""
    thoughts_B = torch.where(thought_mask_BT & mask_BT, scores.logprobs_BT, 0.0).sum(1)
    action_B = torch.where(~thought_mask_BT & mask_BT, scores.logprobs_BT, 0.0).sum(1)
    return thoughts_B, action_B


class DPOContext(NamedTuple):
    """What every part of an iteration works with."""

    policy: HuggingFacePolicy
    updater: Updater
    reference: Reference
    apc_reference: Reference
    """What APC holds to: the reference, or the model that the run started from."""
    config: DPOConfig
    run: Run


class Known(NamedTuple):
    """Scores of an iteration's pairs, before the first update."""

    samples: list[PairSample]
    deviation: float
    """Largest |ratio - 1| between sampled and recomputed."""
    mismatch: list[Metric]
    """Between engines, if they wrote the responses, and the trainer."""
    reference_point: float
    """KTO's: the mean log-ratio of the responses, nats, at least 0."""


class Scored(NamedTuple):
    """One response under the policy, the reference and what APC holds to; nats."""

    logprobs_T: Tensor
    """The policy's, of every token of the completion."""
    own: float
    """log π(T, a|x)."""
    reference_thoughts: float
    reference_action: float
    apc_action: float


def ask_reference(pairs: Sequence[Pair], context: DPOContext) -> Known:
    """Scores the responses as the reference would have given them, and as the policy did.

    Each response to each prompt is scored once, however many pairs it is in.

    Raises:
        OffPolicyError: the policy's own log-probs in fp32 are not those that were sampled:
            prompt, image, ids or weights are not those of the rollout; or an engine has other
            weights than it says.
    """
    policy, _, _, _, config, run = context
    samples = to_pair_samples(pairs, policy)
    policy.module.eval()
    scored = {
        response.key: scores
        for rows in _micro_batches(distinct_completions(samples), config)
        for response, scores in zip(chain(*rows), _score(rows, context), strict=True)
    }
    sides = [(response, scored[response.key]) for pair in samples for response in pair]
    # What is stored may be anybody's.
    differences = [] if config.data else [d for side in sides for d in log_ratios(*side)]
    largest = max(run.gather([float(torch.tensor([0.0, *differences]).expm1().abs().max())]))
    require_on_policy(largest, config.compute, config.generation)
    mismatch = measure_mismatch(differences, config.generation, run)
    ratios = sum(s.own - s.reference_thoughts - s.reference_action for _, s in sides)
    known = [
        response._replace(
            reference_thoughts=scores.reference_thoughts,
            reference_action=scores.reference_action,
            apc_action=scores.apc_action,
        )
        for response, scores in sides
    ]
    samples = [PairSample(*both) for both in zip(known[::2], known[1::2], strict=True)]
    count = 2 * sum(run.gather([len(samples)]))
    return Known(samples, largest, mismatch, max(0.0, sum(run.gather([ratios])) / max(count, 1)))


def log_ratios(response: ResponseSample, scores: Scored) -> list[float]:
    """By how much the log-prob of each token is higher now than it was as sampled, nats."""
    return (scores.logprobs_T - torch.tensor(response.sampled_logprobs)).tolist()


def _micro_batches(
    responses: Sequence[ResponseSample], config: DPOConfig
) -> Iterator[list[list[ResponseSample]]]:
    """Responses to one prompt share a row."""
    examples = [response.example for response in responses]
    for rows in plan_rows(examples, config.compute.micro_batch_tokens):
        yield [[responses[index] for index in row] for row in rows]


def _score(rows: Sequence[Sequence[ResponseSample]], context: DPOContext) -> list[Scored]:
    """The responses of one micro-batch, row after row, without gradient."""
    policy, updater, reference, apc_reference, config, run = context
    responses = [response for row in rows for response in row]
    tokens = build_batch([[response.example for response in row] for row in rows], policy.encoder)
    thoughts_BT = mark_in_window(tokens, [response.is_thought for response in responses])
    tokens, thoughts_BT = tokens.to(policy.device), thoughts_BT.to(policy.device)

    def scores_of(model: Reference | None) -> Scores:
        place = nullcontext() if model is None else model.in_place()
        with place, torch.no_grad(), run.autocast():
            scores: Scores = updater.module(tokens, temperature=config.rollout.sampling.temperature)
        return scores

    own = scores_of(None)
    theirs = scores_of(reference)
    held = theirs if apc_reference is reference else scores_of(apc_reference)
    mask_BT = tokens.mask_BT
    sums = [sums_of(scores, thoughts_BT, mask_BT) for scores in (own, theirs, held)]
    (thoughts_B, action_B), (reference_thoughts_B, reference_action_B), (_, apc_B) = sums
    numbers = (thoughts_B + action_B, reference_thoughts_B, reference_action_B, apc_B)
    logprobs = [row[mask] for row, mask in zip(own.logprobs_BT.cpu(), mask_BT.cpu(), strict=True)]
    return [Scored(*each) for each in zip(logprobs, *(n.tolist() for n in numbers), strict=True)]
