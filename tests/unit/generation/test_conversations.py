"""Conversations through the decode loop: what their beginnings share is computed once."""

from itertools import count

import numpy as np
import pytest
import torch

from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.decoding import DecodeLoop
from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import Example, build_batch
from forethought.models.encoding import Encoder
from forethought.types import Prompt

Tiny = tuple[ActorCritic, Encoder]
TURNS = 4


def ask(loop: DecodeLoop, prompts: list[Prompt], limits: list[int]) -> list[GenerationResult]:
    for key, (prompt, limit) in enumerate(zip(prompts, limits, strict=True)):
        seed = len(prompt.token_ids) * 1000 + key
        loop.submit(GenerationRequest(key, prompt, seed, limit, temperature=0.8))
    results: dict[int, GenerationResult] = {}
    while loop.pending:
        results |= {result.key: result for result in loop.advance()}
    return [results[key] for key in range(len(prompts))]


def texts(encoder: Encoder, starts: int, seed: int = 4) -> list[Prompt]:
    """Prompts without images, of unequal length."""
    rng = np.random.default_rng(seed)
    known = [i for i in range(len(encoder.tokenizer)) if i not in encoder.placeholder_ids]
    return [
        Prompt((), tuple(rng.choice(known, size=int(rng.integers(8, 40))).tolist()))
        for _ in range(starts)
    ]


def followed(prompt: Prompt, result: GenerationResult, observation: Prompt) -> Prompt:
    """The prompt of the next turn: the last one, its completion, and what was observed."""
    ids = (*prompt.token_ids, *result.completion.token_ids, *observation.token_ids[:6])
    return Prompt((), ids)


@pytest.mark.parametrize(
    ("slots", "groups"),
    [
        pytest.param(8, 8, id="a slot for each"),
        pytest.param(3, 8, id="fewer slots than conversations"),
        pytest.param(8, 2, id="groups from one state"),
    ],
)
def test_completions_equal_a_fresh_forward_pass(tiny: Tiny, slots: int, groups: int) -> None:
    """Sampled tokens, their log-probs and the values, turn for turn."""
    module, encoder = tiny
    loop = DecodeLoop(module, encoder, slots=slots)
    prompts = [texts(encoder, groups)[index % groups] for index in range(8)]
    for turn in range(TURNS):
        limits = [2 + (3 * key + turn) % 7 for key in range(len(prompts))]
        results = ask(loop, prompts, limits)
        alone = DecodeLoop(module, encoder, slots=slots)
        for expected, result in zip(ask(alone, prompts, limits), results, strict=True):
            assert result.completion.token_ids == expected.completion.token_ids
        for prompt, result in zip(prompts, results, strict=True):
            batch = build_batch([[Example(prompt, result.completion.token_ids)]], encoder)
            with torch.inference_mode():
                scores = module(batch, temperature=0.8)
            written = result.completion.logprobs
            assert scores.logprobs_BT[0].tolist() == pytest.approx(written, abs=1e-4)
            assert scores.values_B[0].item() == pytest.approx(result.value, abs=1e-4)
        observed = texts(encoder, len(prompts), seed=turn)
        prompts = [followed(*one) for one in zip(prompts, results, observed, strict=True)]


def test_only_what_is_new_goes_through_the_model(tiny: Tiny) -> None:
    loop = DecodeLoop(*tiny, slots=4)
    prompts = texts(tiny[1], 4)
    for turn in count():
        asked, computed = loop.prompts.tokens
        results = ask(loop, prompts, [6] * 4)
        new_asked, new_computed = loop.prompts.tokens
        assert new_asked - asked == sum(len(prompt.token_ids) for prompt in prompts)
        if turn == 0:
            assert new_computed == new_asked
        else:
            # Of each: the completion's last token, which was drawn and not read, and six observed.
            assert new_computed - computed == 4 * 7
        if turn == 3:
            return
        prompts = [followed(p, r, p) for p, r in zip(prompts, results, strict=True)]


def test_values_alone_are_asked_of_what_was_said_before(tiny: Tiny) -> None:
    """The value after a truncated episode's last observation: no token is drawn for it."""
    loop = DecodeLoop(*tiny, slots=2)
    prompts = texts(tiny[1], 2)
    results = ask(loop, prompts, [5, 5])
    nexts = [followed(p, r, p) for p, r in zip(prompts, results, strict=True)]
    values = [result.value for result in ask(loop, nexts, [0, 0])]
    alone = [result.value for result in ask(DecodeLoop(*tiny, slots=2), nexts, [0, 0])]
    assert values == pytest.approx(alone, abs=1e-4)
