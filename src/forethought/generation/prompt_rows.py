"""Which prompts the rows of a cache hold, so that no token goes through the model twice.

A conversation's next prompt begins with the last one and its completion, and the prompts of one
task with the same instructions. A row remembers the token ids whose keys and values it holds; a new
prompt takes over the longest beginning that any row has, and only the rest is computed. Rows are
bounded: the least recently used one gives way.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from forethought.types import Prompt

_NONE = -1
"""No token: behind a row's last one."""
WORTHWHILE = 0.5
"""Share of a prompt that must be there already: tokens that join a row attend to it by a copy and a
mask, which costs more per token than a prompt that is read from its start."""


class Prefilled(NamedTuple):
    """A prompt that has been through the model; its keys and values are in a cache row."""

    row: int
    logits_V: Tensor
    value: float | None
    length: int
    position_lag: int


class Place(NamedTuple):
    """Where a new prompt goes."""

    prompt: Prompt
    row: int
    source: int
    """The row whose beginning it takes over; its own where there is none."""
    start: int
    """Tokens that it takes over; 0: none. At least its last token is computed."""


class PromptRows:
    """The rows that keep prompts, and text that was written after them."""

    def __init__(self, rows: Sequence[int]) -> None:
        self._first = rows[0]
        """They are consecutive."""
        self._free = list(reversed(rows))
        self._used: OrderedDict[int, bytes | None] = OrderedDict()
        """Keys of the prompts that the rows hold, the least recently used row first; None: only
        its tokens are of use."""
        self._known: dict[bytes, Prefilled] = {}
        self._ids = np.full((len(rows), 0), _NONE, dtype=np.int64)

    def __getitem__(self, key: bytes) -> Prefilled:
        return self._known[key]

    def add(self, key: bytes, prefilled: Prefilled) -> None:
        """Notes that a prompt was read into the row of its place."""
        self._known[key] = prefilled
        self._used[prefilled.row] = key

    def place(self, prompts: Mapping[bytes, Prompt]) -> list[Place]:
        """Rows for those prompts that no row holds; what these rows held is forgotten.

        All `source` rows must be copied at once, before any row is written to: one prompt's source
        may be another's row.

        Args:
            prompts: by their keys, at most as many as there are rows; none of those among them that
                are known already gives way.
        """
        for key in prompts:
            if key in self._known:
                self._used.move_to_end(self._known[key].row)
        missing = [prompt for key, prompt in prompts.items() if key not in self._known]
        beginnings = [self._longest_beginning(prompt) for prompt in missing]
        own: list[int | None] = []
        for source, start in beginnings:
            is_next = start > 0 and source not in own
            is_next = is_next and self._is_continued(source, start, prompts)
            own.append(source if is_next else None)
        taken = {row for row in own if row is not None}
        rows = [self._vacate(taken) if row is None else row for row in own]
        for prompt, row in zip(missing, rows, strict=True):
            self._forget(row)
            self._used[row] = None
            self._write(row, prompt.token_ids if _is_text(prompt) else ())
        return [
            Place(prompt, row, source if start else row, start)
            for prompt, row, (source, start) in zip(missing, rows, beginnings, strict=True)
        ]

    def extend(self, prompt: Prompt, completion: Sequence[int]) -> int | None:
        """The row that is to keep a prompt with the completion that was written after it.

        Args:
            completion: the tokens that have been through the model.

        Returns:
            None if there is no room without giving up another prompt, or nothing to gain.
        """
        if not _is_text(prompt) or not completion:
            return None
        known = self._known.get(prompt.key)
        if known is not None and self._length(known.row) == known.length:
            row = known.row
        elif self._free:
            row = self._free.pop()
            self._used[row] = None
        else:
            return None
        self._write(row, (*prompt.token_ids, *completion))
        self._used.move_to_end(row)
        return row

    def _longest_beginning(self, prompt: Prompt) -> tuple[int, int]:
        """The row that shares most with a prompt, and how many tokens; 0 where that is too few."""
        if not _is_text(prompt):
            return 0, 0
        ids = np.asarray(prompt.token_ids[:-1], dtype=np.int64)[: self._ids.shape[1]]
        if not len(ids):
            return 0, 0
        differs = self._ids[:, : len(ids)] != ids
        lengths = np.where(differs.any(1), differs.argmax(1), len(ids))
        best = int(lengths.argmax())
        length = int(lengths[best])
        if length < WORTHWHILE * len(prompt.token_ids):
            return 0, 0
        return self._first + best, length

    def _is_continued(self, row: int, start: int, prompts: Mapping[bytes, Prompt]) -> bool:
        """Whether a prompt that shares so many tokens goes on where the row's own ends, so that it
        has more use for the row than anybody else."""
        key = self._used[row]
        return key is None or (key not in prompts and start >= self._known[key].length)

    def _vacate(self, taken: set[int]) -> int:
        """A free row, or the least recently used one."""
        if self._free:
            row = self._free.pop()
        else:
            row = next(row for row in self._used if row not in taken)
        taken.add(row)
        return row

    def _forget(self, row: int) -> None:
        key = self._used.pop(row, None)
        if key is not None:
            del self._known[key]

    def _length(self, row: int) -> int:
        return int((self._ids[row - self._first] != _NONE).sum())

    def _write(self, row: int, ids: Sequence[int]) -> None:
        width = self._ids.shape[1]
        if len(ids) > width:
            wider: NDArray[np.int64] = np.full((len(self._ids), 2 * len(ids)), _NONE, np.int64)
            wider[:, :width] = self._ids
            self._ids = wider
        self._ids[row - self._first] = _NONE
        self._ids[row - self._first, : len(ids)] = ids


def _is_text(prompt: Prompt) -> bool:
    """Equal ids mean equal keys and values only where no image is among them."""
    return not prompt.images
