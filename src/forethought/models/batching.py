"""Prompts and completions laid out as the tensors of one forward pass.

Completions of equal prompts share a row: the prompt, with its image, goes through the
model once, forwards and backwards, and every completion attends to it and to itself.

    row     p p p p p a a a b b b b c c        three completions of one prompt
    group   0 0 0 0 0 1 1 1 2 2 2 2 3 3        attends to: own group and group 0
    place   0 1 2 3 4 5 6 7 5 6 7 8 5 6        each goes on where the prompt ended
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from forethought.models.encoding import Encoder
from forethought.types import Prompt

ROW_TOKENS = 1024
"""A row takes no further completion beyond this: attention grows with its square."""


class Example(NamedTuple):
    """A prompt and the completion ids to be scored after it (may be empty)."""

    prompt: Prompt
    completion_ids: tuple[int, ...]
    allowed_ids: tuple[tuple[int, ...] | None, ...] = ()
    """As `Completion` has them: what each token was drawn from, where not from all."""

    @property
    def length(self) -> int:
        """Tokens in all."""
        return len(self.prompt.token_ids) + len(self.completion_ids)


Rows = list[list[int]]
"""Indices of examples: each inner list shares a prompt and becomes one row."""


class Held(NamedTuple):
    """C completion tokens that were drawn from at most A ids instead of the vocabulary."""

    rows_C: Tensor
    """Where they stand in `targets_BT`."""
    columns_C: Tensor
    ids_CA: Tensor
    mask_CA: Tensor
    """True where there is an id."""


class TokenBatch(NamedTuple):
    """Right-padded rows [R, L] with B completions in them, at most T tokens long."""

    input_ids_RL: Tensor
    places_RL: Tensor
    """Position of each token in its own prompt-and-completion."""
    groups_RL: Tensor
    """0 in the prompt, 1, 2, … in its completions, -1 in padding."""
    window: Tensor
    """Positions [W] within the rows that go through the vocabulary projection: from the
    earliest end of a prompt on."""
    sources_BT: Tensor
    """Index into the flattened window [R * W] of the position that predicts each
    completion token."""
    targets_BT: Tensor
    """The completion tokens."""
    mask_BT: Tensor
    """True where there is one."""
    value_sources_B: Tensor
    """Index into the flattened window of each prompt's last token: the critic reads there."""
    images: dict[str, Tensor]
    """Named as the model's forward pass names them."""
    is_shared: bool
    """Whether any row has more than one completion."""
    held: Held | None = None
    """Tokens that could be only some, if any."""

    def to(self, device: torch.device) -> "TokenBatch":
        def moved(field: Tensor | dict[str, Tensor] | Held | bool | None) -> Any:
            if isinstance(field, dict):
                return {name: tensor.to(device) for name, tensor in field.items()}
            if isinstance(field, Held):
                return Held(*(tensor.to(device) for tensor in field))
            return field.to(device) if isinstance(field, Tensor) else field

        return TokenBatch(*map(moved, self))


def plan_rows(
    examples: Sequence[Example], max_tokens: int, *, share_prompts: bool = True
) -> list[Rows]:
    """Splits examples into micro-batches of at most `max_tokens`, padding included.

    Rows of similar length meet in a micro-batch, so that little is padding. A single row
    that is longer gets a micro-batch of its own.

    Args:
        share_prompts: whether completions of equal prompts share a row, which pays where
            prompts are long beside them.
    """
    if share_prompts:
        rows = rows_by_prompt(examples, min(max_tokens, ROW_TOKENS))
    else:
        rows = [[index] for index in range(len(examples))]
    lengths = [_row_length(examples, row) for row in rows]
    batches: list[Rows] = []
    for index in sorted(range(len(rows)), key=lambda i: (lengths[i], i)):
        # Sorted: this row is the longest so far, so it sets the padded width.
        if batches and (len(batches[-1]) + 1) * lengths[index] <= max_tokens:
            batches[-1].append(rows[index])
        else:
            batches.append([rows[index]])
    return batches


def rows_by_prompt(examples: Sequence[Example], max_tokens: int) -> Rows:
    """Rows of examples with one prompt each, of at most `max_tokens` where they are several."""
    rows: Rows = []
    open_row: dict[bytes, list[int]] = {}
    for index, example in enumerate(examples):
        key = example.prompt.key
        row = open_row.get(key)
        if row and _row_length(examples, row) + len(example.completion_ids) <= max_tokens:
            row.append(index)
        else:
            open_row[key] = [index]
            rows.append(open_row[key])
    return rows


def _row_length(examples: Sequence[Example], row: Sequence[int]) -> int:
    completions = sum(len(examples[index].completion_ids) for index in row)
    return len(examples[row[0]].prompt.token_ids) + completions


def build_batch(rows: Sequence[Sequence[Example]], encoder: Encoder) -> TokenBatch:
    """Lays out rows of examples that share a prompt; B is their order, row after row.

    Raises:
        PolicyError: an example is longer than the model can read.
    """
    is_shared = any(len(row) > 1 for row in rows)
    longest_example = max(example.length for row in rows for example in row)
    encoder.limits.require_positions(longest_example)
    if is_shared:
        encoder.limits.require_plain_attention(longest_example)
    prompts = [row[0].prompt for row in rows]
    ends = [len(prompt.token_ids) for prompt in prompts]
    completions = [[example.completion_ids for example in row] for row in rows]
    lengths = [end + sum(map(len, row)) for end, row in zip(ends, completions, strict=True)]
    shape = (len(rows), max(lengths))
    ids_RL = np.full(shape, encoder.pad_id, dtype=np.int64)
    places_RL = np.tile(np.arange(shape[1]), (shape[0], 1))
    groups_RL = np.full(shape, -1, dtype=np.int64)
    start, width = min(ends) - 1, max(lengths) - min(ends) + 1
    longest = max(len(ids) for row in completions for ids in row)
    count = sum(len(row) for row in rows)
    sources_BT = np.zeros((count, longest), dtype=np.int64)
    targets_BT = np.zeros((count, longest), dtype=np.int64)
    mask_BT = np.zeros((count, longest), dtype=bool)
    value_sources_B = np.empty(count, dtype=np.int64)
    b = 0
    for r, (prompt, end) in enumerate(zip(prompts, ends, strict=True)):
        ids_RL[r, :end] = prompt.token_ids
        groups_RL[r, :end] = 0
        cursor = end
        for group, ids in enumerate(completions[r], start=1):
            stop = cursor + len(ids)
            ids_RL[r, cursor:stop] = ids
            places_RL[r, cursor:] += end - cursor if group == 1 else -len(completions[r][group - 2])
            groups_RL[r, cursor:stop] = group
            # The prompt's end predicts the first token, each token the one after it.
            predictors = np.array([end - 1, *range(cursor, stop - 1)])[: len(ids)]
            sources_BT[b, : len(ids)] = r * width + predictors - start
            targets_BT[b, : len(ids)] = ids
            mask_BT[b, : len(ids)] = True
            value_sources_B[b] = r * width + end - 1 - start
            cursor, b = stop, b + 1
    # Nothing attends to padding, yet its place must be one that the model has learned.
    places_RL[groups_RL < 0] = 0
    return TokenBatch(
        input_ids_RL=torch.from_numpy(ids_RL),
        places_RL=torch.from_numpy(places_RL),
        groups_RL=torch.from_numpy(groups_RL),
        window=torch.arange(start, start + width),
        sources_BT=torch.from_numpy(sources_BT),
        targets_BT=torch.from_numpy(targets_BT),
        mask_BT=torch.from_numpy(mask_BT),
        value_sources_B=torch.from_numpy(value_sources_B),
        images=encoder.image_inputs([image for prompt in prompts for image in prompt.images]),
        is_shared=is_shared,
        held=_held([example for row in rows for example in row]),
    )


def _held(examples: Sequence[Example]) -> Held | None:
    """Allowed ids of the examples in the order of B."""
    places = [
        (row, column, ids)
        for row, example in enumerate(examples)
        for column, ids in enumerate(example.allowed_ids)
        if ids is not None
    ]
    if not places:
        return None
    ids_CA = np.zeros((len(places), max(len(ids) for _, _, ids in places)), dtype=np.int64)
    mask_CA = np.zeros(ids_CA.shape, dtype=bool)
    for number, (_, _, ids) in enumerate(places):
        ids_CA[number, : len(ids)] = ids
        mask_CA[number, : len(ids)] = True
    rows, columns, _ = zip(*places, strict=True)
    return Held(
        torch.tensor(rows),
        torch.tensor(columns),
        torch.from_numpy(ids_CA),
        torch.from_numpy(mask_CA),
    )


def place_in_window(batch: TokenBatch, rows: Sequence[Sequence[float]]) -> Tensor:
    """Numbers per completion token, e.g. old log-probs, in the layout of `targets_BT`.

    Raises:
        ValueError: a row has not one number per completion token.
    """
    return _place(batch, rows, np.float32)


def mark_in_window(batch: TokenBatch, rows: Sequence[Sequence[bool]]) -> Tensor:
    """Flags per completion token, in the layout of `targets_BT`."""
    return _place(batch, rows, np.bool_)


def _place(batch: TokenBatch, rows: Sequence[Sequence[float]], dtype: type[np.generic]) -> Tensor:
    mask_BT = batch.mask_BT.cpu().numpy()
    counts = mask_BT.sum(axis=1).tolist()
    if [len(row) for row in rows] != counts:
        raise ValueError(
            f"one number per completion token: got {[len(row) for row in rows]}, expected {counts}"
        )
    placed_BT: NDArray[np.generic] = np.zeros(mask_BT.shape, dtype=dtype)
    placed_BT[mask_BT] = np.concatenate([np.asarray(row, dtype=dtype) for row in rows])
    return torch.from_numpy(placed_BT)
