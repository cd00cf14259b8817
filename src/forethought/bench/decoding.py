"""Decoding speed beside Hugging Face `generate`: same weights, same dtype, same prompts.

Two loads. Equal lengths: 64 prompts of 160 tokens: what one token step of 64 rows costs, and
what putting the prompts through the model costs. Mixed lengths, which is what agents
produce: 512 requests, prompts of 120 to 200 tokens, completions of 10 to 60; `generate`
takes them in batches of 64, each of which goes on until its longest completion is done; ours
retires rows and admits others. No two prompts are equal, so nothing is gained by sharing
them. Completions have exactly the length that is asked for, and both sides sample with
temperature 1 and keep what log-probabilities need.
"""

from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch

from forethought.bench.contract import BenchmarkResult, Pair, compare
from forethought.bench.models import make_models
from forethought.policies.actor_critic import ActorCritic
from forethought.policies.contract import GenerationRequest
from forethought.policies.decoding import DecodeLoop
from forethought.policies.encoding import Encoder
from forethought.policies.loading import LoadedModel
from forethought.policies.tiny import IMAGE_SIZE
from forethought.types import Message, Prompt

BATCH = 64
STEPS = 48
PAIRS = 3


class Load(NamedTuple):
    """Prompts, and how many tokens each is answered with."""

    prompts: list[Prompt]
    new_tokens: list[int]

    def shortened(self, new_tokens: int) -> "Load":
        return Load(self.prompts, [new_tokens] * len(self.prompts))


def measure_decoding(*, pairs: int = PAIRS, requests: int = 8 * BATCH) -> Iterator[BenchmarkResult]:
    """Every architecture, on one core.

    Args:
        pairs: how many times both sides are measured in turn.
        requests: of mixed lengths.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, loaded in make_models():
            yield from _measure(f"decode/{name}", loaded, pairs, requests)
    finally:
        torch.set_num_threads(threads)


def _measure(
    name: str, loaded: LoadedModel, pairs: int, requests: int
) -> Iterator[BenchmarkResult]:
    race = _Race(loaded)
    equal = race.make_load(BATCH, (160, 160), (STEPS + 1, STEPS + 1))
    race.run(equal.shortened(2))  # warms up
    # The first token comes with the prompt; the others are a step each.
    prefills = [race.run(equal.shortened(1)) for _ in range(pairs)]
    wholes = [race.run(equal) for _ in range(pairs)]
    steps = [
        Pair(*(1000 * (late - early) / STEPS for late, early in zip(whole, prefill, strict=True)))
        for whole, prefill in zip(wholes, prefills, strict=True)
    ]
    yield compare(f"{name}/token step", "ms", steps, less_is_better=True)
    milliseconds = [Pair(1000 * ours, 1000 * theirs) for ours, theirs in prefills]
    yield compare(f"{name}/prefill", "ms", milliseconds, less_is_better=True)
    mixed = race.make_load(requests, (120, 200), (10, 60))
    tokens = sum(mixed.new_tokens)
    seconds = [race.run(mixed) for _ in range(pairs)]
    speeds = [Pair(tokens / ours, tokens / theirs) for ours, theirs in seconds]
    yield compare(f"{name}/mixed", "tokens/s", speeds)


class _Race:
    """One model, and both ways to decode with it."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._model: Any = loaded.model.eval()
        self._encoder = Encoder(loaded.model, loaded.processor)
        self._encoder.stop_ids = ()  # every answer has exactly the length that is asked for
        self._module = ActorCritic(loaded.model, None).eval()
        self._random = np.random.default_rng(0)

    def make_load(
        self, count: int, prompt_tokens: tuple[int, int], new_tokens: tuple[int, int]
    ) -> Load:
        """Random prompts of random lengths, both ends included."""
        prompts = [self._prompt(self._between(prompt_tokens)) for _ in range(count)]
        return Load(prompts, [self._between(new_tokens) for _ in range(count)])

    def _between(self, bounds: tuple[int, int]) -> int:
        return int(self._random.integers(bounds[0], bounds[1] + 1))

    def _prompt(self, length: int) -> Prompt:
        image = None
        if self._encoder.reads_images:
            image = self._random.integers(0, 256, (IMAGE_SIZE, IMAGE_SIZE, 3)).astype(np.uint8)
        message = Message("user", "", image)
        start = self._encoder.encode([message]).token_ids
        words = self._random.integers(100, 250, size=length - len(start)).tolist()
        return Prompt((message,), (*start, *words))

    def run(self, load: Load) -> Pair:
        """Seconds that either side takes."""
        return Pair(self._ours(load), self._theirs(load))

    def _ours(self, load: Load) -> float:
        started = perf_counter()
        loop = DecodeLoop(self._module, self._encoder, slots=BATCH)
        for key, (prompt, limit) in enumerate(zip(*load, strict=True)):
            loop.submit(GenerationRequest(key, prompt, key, limit, 1.0))
        while loop.pending:
            loop.advance()
        return perf_counter() - started

    @torch.inference_mode()
    def _theirs(self, load: Load) -> float:
        started = perf_counter()
        for first in range(0, len(load.prompts), BATCH):
            prompts = load.prompts[first : first + BATCH]
            longest = max(len(prompt.token_ids) for prompt in prompts)
            ids = torch.full((len(prompts), longest), self._encoder.pad_id)
            mask = torch.zeros_like(ids)
            for row, prompt in enumerate(prompts):
                ids[row, longest - len(prompt.token_ids) :] = torch.tensor(prompt.token_ids)
                mask[row, longest - len(prompt.token_ids) :] = 1
            limit = max(load.new_tokens[first : first + BATCH])
            self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=True,
                top_k=0,
                min_new_tokens=limit,
                max_new_tokens=limit,
                output_logits=True,
                return_dict_in_generate=True,
                **self._encoder.image_inputs([image for p in prompts for image in p.images]),
            )
        return perf_counter() - started
