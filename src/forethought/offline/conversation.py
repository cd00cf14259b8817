"""Answers as rows of tokens: a conversation is one row, which goes through the model once.

Where a prompt begins with the one before it and the answer to that, the next answer is written
behind both, and what lies between is the world's reply:

    row       p p p p a a a o o o a a a a      two answers, and the reply between them
    action            * * *       * * * *
    reply                   * * *
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.models.batching import (
    Example,
    TokenBatch,
    build_batch,
    mark_in_window,
    plan_rows,
)
from forethought.models.encoding import Encoder
from forethought.offline.packing import PackedExample, Packer
from forethought.rollouts.pictures import PictureDecoder


class Row(NamedTuple):
    """Tokens that go through the model together."""

    packed: PackedExample
    """The first prompt, and everything behind it: answers and replies."""
    is_action: tuple[bool, ...]
    """Per token behind the prompt: is it of an answer to learn from?"""
    is_reply: tuple[bool, ...]
    """Per token behind the prompt: is it of what the world replied?"""
    answers: int
    """How many are learned from."""

    @property
    def length(self) -> int:
        """Tokens in all."""
        return self.packed.length

    @property
    def actions(self) -> int:
        """How many tokens are learned from."""
        return sum(self.is_action)

    @property
    def replies(self) -> int:
        """How many tokens are the world's."""
        return sum(self.is_reply)


class RowBatch(NamedTuple):
    """Rows of one micro-batch."""

    tokens: TokenBatch
    is_action_BT: Tensor
    order: tuple[int, ...]
    """Which of the rows, in the order in which their actions stand."""


def to_rows(answers: Iterable[tuple[Example, bool]], limit: int | None) -> list[Row]:
    """As few rows as the prompts allow.

    Args:
        answers: in the order in which they were given, and whether to learn from them. One that
            is not learned from stands in its row where later answers follow it, else nowhere.
        limit: tokens that the model reads; None: any number.
    """
    rows: list[Row] = []
    pack = Packer()
    for one, is_learned in answers:
        example = pack(one)
        flags = (is_learned,) * len(example.completion_ids)
        longer = _continued(rows[-1], example, flags, limit) if rows else None
        if longer is None:
            rows.append(Row(example, flags, (False,) * len(flags), int(is_learned)))
        else:
            rows[-1] = longer
    return [row for row in rows if row.actions]


def _continued(
    row: Row, example: PackedExample, flags: tuple[bool, ...], limit: int | None
) -> Row | None:
    """The row with this answer behind it; None where its prompt does not begin with the row, or
    it would be longer than the model reads."""
    before = row.packed
    ids, so_far = example.prompt_ids, before.length
    first = len(before.prompt_ids)
    begins = ids[:first] == before.prompt_ids and ids[first:so_far] == before.completion_ids
    if not begins or (limit is not None and example.length > limit):
        return None
    reply = ids[so_far:]
    said = (*before.completion_ids, *reply, *example.completion_ids)
    return Row(
        # The later prompt holds the pictures of the earlier one, and those of the replies.
        PackedExample(before.prompt_ids, example.pngs, said),
        is_action=(*row.is_action, *(False,) * len(reply), *flags),
        is_reply=(*row.is_reply, *(True,) * len(reply), *(False,) * len(flags)),
        answers=row.answers + any(flags),
    )


def lay_out_rows(
    rows: Sequence[Row], encoder: Encoder, device: torch.device, max_tokens: int
) -> list[RowBatch]:
    """Micro-batches of all rows, on the device.

    Answers that stand alone share the rows of equal prompts; whole conversations do not: their
    prompts are short beside them.
    """
    alone = all(all(row.is_action) for row in rows)
    batches: list[RowBatch] = []
    image_of = PictureDecoder()
    examples = [row.packed.unpack(image_of) for row in rows]
    for plan in plan_rows(examples, max_tokens, share_prompts=alone):
        tokens = build_batch([[examples[i] for i in group] for group in plan], encoder)
        order = tuple(i for group in plan for i in group)
        is_action_BT = mark_in_window(tokens, [rows[i].is_action for i in order])
        batches.append(RowBatch(tokens.to(device), is_action_BT.to(device), order))
    return batches


def mark_replies(batch: RowBatch, rows: Sequence[Row]) -> Tensor:
    """Which tokens are the world's: bool, in the layout of `is_action_BT`.

    Args:
        rows: those that were laid out, all micro-batches'.
    """
    is_reply_BT = mark_in_window(batch.tokens, [rows[i].is_reply for i in batch.order])
    return is_reply_BT.to(batch.is_action_BT.device)
