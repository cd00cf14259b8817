"""Decoding speed beside Hugging Face `generate`: same weights, same prompts.

Two loads. Equal lengths: 64 prompts of 160 tokens: what one token step of 64 rows costs, and
what putting the prompts through the model costs. Mixed lengths, which is what agents
produce: 512 requests, prompts of 120 to 200 tokens, completions of 10 to 60; `generate`
takes them in batches of 64, each of which goes on until its longest completion is done; ours
retires rows and admits others. No two prompts are equal, so nothing is gained by sharing
them. Completions have exactly the length that is asked for.

And two ways to call `generate`. As an equal: in our dtype, with all of the vocabulary to
draw from, at temperature 1, and keeping what log-probabilities need. And as it comes
(`at its defaults`): the weights loaded by `from_pretrained` without a dtype, which then is that of
the files, fp32 or, as most are published, bf16; `generate` told nothing but to sample and how
far, so that it neither keeps logits nor need draw from all tokens. Ours is the same each
time: fp32, as `load_pretrained` gives it, and with log-probabilities.
"""

from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from benchmarks.speed.contract import BenchmarkResult, Pair, compare, side_by_side
from benchmarks.speed.models import make_models
from benchmarks.speed.preparation import one_thread
from forethought.generation.contract import GenerationRequest
from forethought.generation.decoding import DecodeLoop
from forethought.models.actor_critic import ActorCritic
from forethought.models.encoding import Encoder
from forethought.models.loading import LoadedModel
from forethought.models.tiny import IMAGE_SIZE
from forethought.types import Message, Prompt

BATCH = 64
STEPS = 48
PAIRS = 3
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
"""That the files of the weights may have."""


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
    with one_thread():
        for name, loaded in make_models():
            yield from _measure(f"decode/{name}", loaded, pairs, requests)


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
        whole._replace(
            ours=1000 * (whole.ours - prefill.ours) / STEPS,
            baseline=1000 * (whole.baseline - prefill.baseline) / STEPS,
        )
        for whole, prefill in zip(wholes, prefills, strict=True)
    ]
    yield compare(f"{name}/token step", "ms", steps, less_is_better=True)
    milliseconds = [pair.converted(lambda s: 1000 * s) for pair in prefills]
    yield compare(f"{name}/prefill", "ms", milliseconds, less_is_better=True)
    mixed = race.make_load(requests, (120, 200), (10, 60))
    tokens = sum(mixed.new_tokens)
    equals = [race.run(mixed).converted(lambda s: tokens / s) for _ in range(pairs)]
    yield compare(f"{name}/mixed", "tokens/s", equals)
    for files, dtype in DTYPES.items():
        published = load_as_published(loaded.model, dtype)
        runs = [race.run(mixed, published) for _ in range(pairs)]
        speeds = [pair.converted(lambda s: tokens / s) for pair in runs]
        yield compare(f"{name}/mixed, at its defaults ({files})", "tokens/s", speeds)


def load_as_published(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """The same weights as `from_pretrained` gives them, told nothing, from files of a dtype."""
    with TemporaryDirectory() as folder:
        deepcopy(model).to(dtype).save_pretrained(folder)  # pyright: ignore[reportArgumentType]
        return type(model).from_pretrained(folder).eval()


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

    def run(self, load: Load, published: PreTrainedModel | None = None) -> Pair:
        """Seconds that either side takes.

        Args:
            published: a model for `generate` to run at its defaults; None: as our equal.
        """
        return side_by_side(partial(self._ours, load), partial(self._theirs, load, published))

    def _ours(self, load: Load) -> float:
        started = perf_counter()
        loop = DecodeLoop(self._module, self._encoder, slots=BATCH)
        for key, (prompt, limit) in enumerate(zip(*load, strict=True)):
            loop.submit(GenerationRequest(key, prompt, key, limit, 1.0))
        while loop.pending:
            loop.advance()
        return perf_counter() - started

    @torch.inference_mode()
    def _theirs(self, load: Load, published: PreTrainedModel | None) -> float:
        started = perf_counter()
        model: Any = published or self._model
        as_equal = {"top_k": 0, "output_logits": True, "return_dict_in_generate": True}
        for first in range(0, len(load.prompts), BATCH):
            limit = max(load.new_tokens[first : first + BATCH])
            model.generate(
                **self._padded(load.prompts[first : first + BATCH], model.dtype),
                do_sample=True,
                min_new_tokens=limit,
                max_new_tokens=limit,
                **({} if published else as_equal),
            )
        return perf_counter() - started

    def _padded(self, prompts: list[Prompt], dtype: torch.dtype) -> dict[str, Tensor]:
        """What a processor gives for a batch: padded on the left, images in the model's dtype."""
        longest = max(len(prompt.token_ids) for prompt in prompts)
        ids = torch.full((len(prompts), longest), self._encoder.pad_id)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt.token_ids) :] = torch.tensor(prompt.token_ids)
            mask[row, longest - len(prompt.token_ids) :] = 1
        images = self._encoder.image_inputs([image for p in prompts for image in p.images])
        cast = {n: t.to(dtype) if t.is_floating_point() else t for n, t in images.items()}
        return {"input_ids": ids, "attention_mask": mask, **cast}
