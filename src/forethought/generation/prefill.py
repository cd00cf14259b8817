"""Prompts into a cache: equal ones are computed once, and of others only what is new."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.generation.prompt_rows import Place, Prefilled, PromptRows
from forethought.generation.stepping import PromptsRead, SteppedModel, copy_rows
from forethought.models.batching import Example, build_batch, plan_rows
from forethought.models.encoding import Encoder
from forethought.types import Prompt

PREFILL_TOKENS = {"cpu": 2048}
"""At most so many prompt tokens in one forward pass: on the CPU as many as leave what the
layers compute in the processor's cache."""
PREFILL_TOKENS_ELSEWHERE = 16384

Mix = Callable[[Sequence[Tensor]], Tensor]
"""From each model's logits [B, V] of the same rows to those that are drawn from."""


class PromptTokens(NamedTuple):
    """How many tokens of prompts there were, and how many went through the model."""

    asked: int
    computed: int


class PromptReader:
    """Reads prompts into rows of the models' caches, and finds them there."""

    def __init__(
        self, models: Sequence[SteppedModel], encoder: Encoder, mix: Mix, rows: Sequence[int]
    ) -> None:
        """
        Args:
            models: that read the same rows.
            mix: how all of them, in this order, give one distribution.
            rows: of their caches that keep prompts.
        """
        self._models, self._encoder, self._mix = models, encoder, mix
        self._rows = PromptRows(rows)
        self._device = models[0].device
        self._at_once = PREFILL_TOKENS.get(self._device.type, PREFILL_TOKENS_ELSEWHERE)
        self.tokens = PromptTokens(asked=0, computed=0)

    def __getitem__(self, key: bytes) -> Prefilled:
        return self._rows[key]

    def extend(self, prompt: Prompt, completion: Sequence[int]) -> int | None:
        """As `PromptRows.extend`."""
        return self._rows.extend(prompt, completion)

    def read(self, prompts: Sequence[Prompt], homes: Mapping[bytes, int]) -> set[int]:
        """Puts through the models what is new of prompts.

        Args:
            prompts: at most as many as there are rows.
            homes: the row in which each prompt is to be continued, if in any.

        Returns:
            The rows that hold their prompt now.
        """
        places = self._rows.place({prompt.key: prompt for prompt in prompts})
        further = [place for place in places if place.start]
        whole = [place for place in places if not place.start]
        self._read_further(further)
        examples = [Example(place.prompt, ()) for place in whole]
        for rows in plan_rows(examples, self._at_once):
            self._prefill([whole[index] for (index,) in rows], homes)
        self.tokens = PromptTokens(
            self.tokens.asked + sum(len(prompt.token_ids) for prompt in prompts),
            self.tokens.computed + sum(len(p.prompt.token_ids) - p.start for p in places),
        )
        return {homes[place.prompt.key] for place in whole if place.prompt.key in homes}

    def _read_further(self, places: Sequence[Place]) -> None:
        """Puts the rest of prompts through the model that begin as others did."""
        if not places:
            return
        moves = [(place.source, place.row) for place in places]
        copy_rows(self._models, moves, max(place.start for place in places))
        ordered = sorted(places, key=lambda place: len(place.prompt.token_ids) - place.start)
        while ordered:
            width = len(ordered[-1].prompt.token_ids) - ordered[-1].start
            count = max(1, self._at_once // width)
            group, ordered = ordered[-count:], ordered[:-count]
            tokens = [place.prompt.token_ids[place.start :] for place in group]
            starts, rows = [place.start for place in group], [place.row for place in group]
            self._note(group, [model.read_further(tokens, starts, rows) for model in self._models])

    def _prefill(self, places: Sequence[Place], homes: Mapping[bytes, int]) -> None:
        prompts = [place.prompt for place in places]
        rows = [place.row for place in places]
        in_use = [homes.get(place.prompt.key, place.row) for place in places]
        batch = build_batch([[Example(prompt, ())] for prompt in prompts], self._encoder)
        batch = batch.to(self._device)
        lengths = [len(prompt.token_ids) for prompt in prompts]
        read = [
            model.read_prompts(batch, lengths, self._tensor(rows), self._tensor(in_use))
            for model in self._models
        ]
        self._note(places, read)

    def _note(self, places: Sequence[Place], read: Sequence[PromptsRead]) -> None:
        """Keeps what the models made of prompts."""
        logits_BV = self._mix([one.logits_BV for one in read])
        for index, (prompt, row, _, _) in enumerate(places):
            value, lag = read[0].values[index], read[0].lags[index]
            prefilled = Prefilled(row, logits_BV[index], value, len(prompt.token_ids), lag)
            self._rows.add(prompt.key, prefilled)

    def _tensor(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=self._device)
