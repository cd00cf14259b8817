"""Decoding speed beside Hugging Face `generate`: same weights, same dtype, same prompts.

Two loads. Equal lengths: 64 prompts, all of one length, 48 new tokens each: what one
token step costs. Mixed lengths, which is what agents produce: 512 requests, prompts of
120 to 200 tokens, completions of 10 to 60; `generate` takes them in batches of 64 and
runs each until its longest completion is done, ours retires rows and admits others.
No two prompts are equal, so nothing is gained by sharing them.
"""

from collections.abc import Iterator
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedModel

from forethought.bench.contract import BenchmarkResult
from forethought.policies.actor_critic import ActorCritic
from forethought.policies.contract import GenerationRequest
from forethought.policies.decoding import DecodeLoop
from forethought.policies.encoding import Encoder
from forethought.policies.loading import LoadedModel
from forethought.policies.tiny import IMAGE_SIZE, build_model, build_processor, train_tokenizer
from forethought.types import Message, Prompt

BATCH = 64
PAIRS = 3
WORDS = ("look", "think", "act", "learn", "card", "number", "target", "sum", "formula", "choose")


class Load(NamedTuple):
    """Prompts, and how many tokens each is answered with."""

    prompts: list[Prompt]
    new_tokens: list[int]

    @property
    def tokens(self) -> int:
        return sum(self.new_tokens)


def measure_decoding(*, pairs: int = PAIRS) -> Iterator[BenchmarkResult]:
    """The tiny vision-language model, then two architectures of other families."""
    for name, loaded in _models():
        bench = _Bench(loaded)
        equal = bench.make_load(BATCH, (160, 160), (48, 48))
        mixed = bench.make_load(8 * BATCH, (120, 200), (10, 60))
        yield bench.compare(f"decode/{name}/equal", equal, pairs, per_step=True)
        yield bench.compare(f"decode/{name}/mixed", mixed, pairs, per_step=False)


def _models() -> Iterator[tuple[str, LoadedModel]]:
    tokenizer = train_tokenizer([" ".join(WORDS)] * 2)
    yield "tiny-llava", LoadedModel(build_model(tokenizer, seed=0), build_processor(tokenizer))
    size = {"vocab_size": len(tokenizer), "bos_token_id": None, "eos_token_id": 1}
    llama = LlamaConfig(
        **size,  # pyright: ignore[reportArgumentType]
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
    )
    gpt2 = GPT2Config(**size, n_embd=128, n_layer=4, n_head=4)  # pyright: ignore[reportArgumentType]
    for name, config in (("llama", llama), ("gpt2", gpt2)):
        model: Any = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
        yield name, LoadedModel(model, train_tokenizer([" ".join(WORDS)] * 2))


class _Bench:
    """One model, and both ways to decode with it."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.model: PreTrainedModel = loaded.model.eval()
        self.encoder = Encoder(loaded.model, loaded.processor)
        self.encoder.stop_ids = ()  # every answer has exactly the length that is asked for
        self.module = ActorCritic(loaded.model, None).eval()
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
        if self.encoder.reads_images:
            image = self._random.integers(0, 256, (IMAGE_SIZE, IMAGE_SIZE, 3)).astype(np.uint8)
        message = Message("user", "", image)
        start = self.encoder.encode([message]).token_ids
        words = self._random.integers(100, 250, size=length - len(start)).tolist()
        return Prompt((message,), (*start, *words))

    def compare(
        self, name: str, load: Load, pairs: int, *, per_step: bool
    ) -> BenchmarkResult:
        """Runs both in turn and compares the medians; the first pair warms up."""
        timed = [(self._ours(load), self._theirs(load)) for _ in range(pairs + 1)][1:]
        ratios = [theirs / ours for ours, theirs in timed]
        ours, theirs = (median(seconds) for seconds in zip(*timed, strict=True))
        steps = max(load.new_tokens)
        return BenchmarkResult(
            name=name,
            value=1000 * ours / steps if per_step else load.tokens / ours,
            unit="ms/token step" if per_step else "tokens/s",
            baseline=1000 * theirs / steps if per_step else load.tokens / theirs,
            ratio=median(ratios),
            ratio_low=min(ratios),
            ratio_high=max(ratios),
        )

    def _ours(self, load: Load) -> float:
        started = perf_counter()
        loop = DecodeLoop(self.module, self.encoder, slots=BATCH)
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
            ids = torch.full((len(prompts), longest), self.encoder.pad_id)
            mask = torch.zeros_like(ids)
            for row, prompt in enumerate(prompts):
                ids[row, longest - len(prompt.token_ids) :] = torch.tensor(prompt.token_ids)
                mask[row, longest - len(prompt.token_ids) :] = 1
            limit = max(load.new_tokens[first : first + BATCH])
            generate: Any = self.model.generate
            generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=True,
                top_k=0,
                min_new_tokens=limit,
                max_new_tokens=limit,
                output_logits=True,
                return_dict_in_generate=True,
                **self.encoder.image_inputs([image for p in prompts for image in p.images]),
            )
        return perf_counter() - started
