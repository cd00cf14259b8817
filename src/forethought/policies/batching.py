"""Prompts and completions laid out as the tensors of one forward pass."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from forethought.policies.encoding import Encoder
from forethought.types import Prompt


class Example(NamedTuple):
    """A prompt and the completion ids to be scored after it (may be empty)."""

    prompt: Prompt
    completion_ids: tuple[int, ...]

    @property
    def length(self) -> int:
        """Tokens in all."""
        return len(self.prompt.token_ids) + len(self.completion_ids)


class TokenBatch(NamedTuple):
    """Right-padded rows [B, L], and the window [B, T] in which completions lie.

    The window is the shortest range of positions that holds every row's last prompt
    token and all its completion tokens but the last: what must go through the
    vocabulary projection, and no more. Nothing attends to padding on the right, so no
    attention mask is needed.
    """

    input_ids_BL: Tensor
    targets_BT: Tensor
    """The token that each window position predicts."""
    mask_BT: Tensor
    """True where that token belongs to the completion."""
    window: Tensor
    """Positions [T] of the window within the rows, int64."""
    value_index_B: Tensor
    """Where in the window each prompt ends: the critic reads there."""
    model_inputs: dict[str, Tensor]
    """Images and token types, named as the model's forward pass names them."""

    def to(self, device: torch.device) -> "TokenBatch":
        tensors = [field.to(device) for field in self[:5]]
        inputs = {name: value.to(device) for name, value in self.model_inputs.items()}
        return TokenBatch(*tensors, inputs)


def build_batch(examples: Sequence[Example], encoder: Encoder) -> TokenBatch:
    """Lays examples out, one row each, in the given order."""
    longest = max(example.length for example in examples)
    shortest_prompt = min(len(example.prompt.token_ids) for example in examples)
    input_ids_BL = np.full((len(examples), longest), encoder.pad_id, dtype=np.int64)
    start = shortest_prompt - 1
    # The last completion token predicts nothing that is asked for; a bare prompt's last does.
    stop = max(example.length - bool(example.completion_ids) for example in examples)
    mask_BT = np.zeros((len(examples), stop - start), dtype=bool)
    value_index_B = np.empty(len(examples), dtype=np.int64)
    for row, (prompt, completion_ids) in enumerate(examples):
        end = len(prompt.token_ids)
        input_ids_BL[row, :end] = prompt.token_ids
        input_ids_BL[row, end : end + len(completion_ids)] = completion_ids
        value_index_B[row] = end - 1 - start
        mask_BT[row, value_index_B[row] : value_index_B[row] + len(completion_ids)] = True
    window = np.arange(start, stop)
    targets_BT = np.take(input_ids_BL, np.minimum(window + 1, longest - 1), axis=1)
    ids = torch.from_numpy(input_ids_BL)
    images = [image for example in examples for image in example.prompt.images]
    inputs = encoder.image_inputs(images)
    if encoder.wants_token_types and images:
        inputs["mm_token_type_ids"] = encoder.token_types(ids)
    return TokenBatch(
        ids,
        torch.from_numpy(targets_BT),
        torch.from_numpy(mask_BT),
        torch.from_numpy(window),
        torch.from_numpy(value_index_B),
        inputs,
    )


def place_in_window(batch: TokenBatch, rows: Sequence[Sequence[float]]) -> Tensor:
    """Per-completion-token numbers, e.g. old log-probs, in the layout of `targets_BT`.

    Raises:
        ValueError: a row has not one number per completion token.
    """
    return _place(batch, rows, np.float32)


def mark_in_window(batch: TokenBatch, rows: Sequence[Sequence[bool]]) -> Tensor:
    """Per-completion-token flags in the layout of `targets_BT`."""
    return _place(batch, rows, np.bool_)


def _place(
    batch: TokenBatch, rows: Sequence[Sequence[float]], dtype: type[np.generic]
) -> Tensor:
    mask_BT = batch.mask_BT.numpy()
    counts = mask_BT.sum(axis=1).tolist()
    if [len(row) for row in rows] != counts:
        raise ValueError(
            f"one number per completion token: got {[len(row) for row in rows]}, expected {counts}"
        )
    placed_BT: NDArray[np.generic] = np.zeros(mask_BT.shape, dtype=dtype)
    placed_BT[mask_BT] = np.concatenate([np.asarray(row, dtype=dtype) for row in rows])
    return torch.from_numpy(placed_BT)


def split_by_tokens(
    lengths: Sequence[int], max_tokens: int
) -> list[list[int]]:
    """Groups indices into micro-batches of at most `max_tokens`, padding included.

    Rows of similar length share a micro-batch, so that little is padding. A single row
    longer than `max_tokens` gets a micro-batch of its own.
    """
    by_length = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    groups: list[list[int]] = []
    for index in by_length:
        # Sorted: this row is the longest so far, so it sets the padded width.
        if groups and (len(groups[-1]) + 1) * lengths[index] <= max_tokens:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups
