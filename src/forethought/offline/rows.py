"""Completions as rows of tokens: a conversation is one row, which goes through the model once.

Where a prompt begins with the one before it and the completion of that, the next completion is
appended to both, and what lies between is the environment's reply:

    row       p p p p a a a o o o a a a a      two completions, and the reply between them
    action            * * *       * * * *
    reply                   * * *
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.errors import PolicyError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import (
    Example,
    TokenBatch,
    build_batch,
    mark_in_window,
    plan_rows,
)
from forethought.models.encoding import Encoder
from forethought.rollouts.shard_files import ImageDecoder, ImageEncoder
from forethought.types import Message, Prompt, Step


class Row(NamedTuple):
    """Tokens that go through the model together: a prompt, and all that follows it.

    Images wait as PNG bytes: a drawn one takes a hundredth of its pixels.
    """

    prompt_ids: tuple[int, ...]
    pngs: tuple[bytes, ...]
    """In the order in which prompt and replies show them."""
    completion_ids: tuple[int, ...]
    """Everything after the first prompt: completions and replies."""
    is_action: tuple[bool, ...]
    """Per token after the prompt: is it of a completion to learn from?"""
    is_reply: tuple[bool, ...]
    """Per token after the prompt: is it of what the environment replied?"""
    responses: int
    """How many completions are learned from."""

    @property
    def length(self) -> int:
        """Tokens in all."""
        return len(self.prompt_ids) + len(self.completion_ids)

    @property
    def actions(self) -> int:
        """How many tokens are learned from."""
        return sum(self.is_action)

    @property
    def replies(self) -> int:
        """How many tokens are the environment's."""
        return sum(self.is_reply)

    def unpack(self, image_of: ImageDecoder) -> Example:
        """As it is laid out in a batch; of the prompt's messages the images alone are left.

        Args:
            image_of: one for the whole batch, so that equal images are decoded once.
        """
        shown = tuple(Message("user", "", image_of(png)) for png in self.pngs)
        return Example(Prompt(shown, self.prompt_ids), self.completion_ids)


class RowBatch(NamedTuple):
    """Rows of one micro-batch."""

    tokens: TokenBatch
    is_action_BT: Tensor
    order: tuple[int, ...]
    """Which of the rows that were laid out, in the order in which their actions are numbered."""

    def actions(self) -> Tensor:
        """The agent's tokens, [N]."""
        return self.tokens.targets_BT[self.is_action_BT]


# From stored steps


def to_example(step: Step, policy: HuggingFacePolicy) -> Example:
    """A step as training data.

    Ids that a model sampled are kept as they are; the text is tokenized only where there
    are none (an expert wrote it), or where they are those of another tokenizer.
    """
    prompt = stored_prompt(step, policy)
    sampled = step.completion.token_ids
    try:
        if not sampled or prompt.token_ids != step.prompt.token_ids:
            sampled = policy.encoder.tokenize_response(step.completion.text)
        policy.encoder.limits.require_prompt(
            len(prompt.token_ids) + len(sampled) - 1,
            "the prompt with all but the end of its answer",
        )
    except PolicyError as error:
        raise _placed(error, step) from error
    return Example(prompt, sampled)


def stored_prompt(step: Step, policy: HuggingFacePolicy) -> Prompt:
    """The prompt of stored messages, for this model.

    Raises:
        PolicyError: the model cannot read it, or it is too long.
    """
    try:
        return policy.prompt(step.prompt.messages)
    except PolicyError as error:
        raise _placed(error, step) from error


def _placed(error: PolicyError, step: Step) -> PolicyError:
    return type(error)(f"data, a step in state {step.state_key[:40]!r}: {error}")


def to_rows(responses: Iterable[tuple[Example, bool]], limit: int | None) -> list[Row]:
    """As few rows as the prompts allow.

    Args:
        answers: in the order in which they were given, and whether to learn from them. One that
            is not learned from is part of its row where later ones follow it, else of none.
        limit: tokens that the model reads; None: any number.
    """
    rows: list[Row] = []
    png_of = ImageEncoder()  # Equal images of all rows are packed once, and kept once.
    for example, is_learned in responses:
        row = pack(example, png_of, is_learned=is_learned)
        longer = _continued(rows[-1], row, limit) if rows else None
        if longer is None:
            rows.append(row)
        else:
            rows[-1] = longer
    return [row for row in rows if row.actions]


def written_rows(steps: Iterable[Step], encoder: Encoder) -> list[Row]:
    """Rows of stored steps, every text tokenized; for the plan of a run, which has no policy."""
    examples = (
        Example(
            encoder.encode(step.prompt.messages), encoder.tokenize_response(step.completion.text)
        )
        for step in steps
    )
    return to_rows(((example, True) for example in examples), None)


def pack(example: Example, png_of: ImageEncoder, *, is_learned: bool = True) -> Row:
    """One completion as a row of its own."""
    prompt, ids = example.prompt, example.completion_ids
    return Row(
        prompt.token_ids,
        tuple(map(png_of, prompt.images)),
        ids,
        is_action=(is_learned,) * len(ids),
        is_reply=(False,) * len(ids),
        responses=int(is_learned),
    )


def _continued(row: Row, after: Row, limit: int | None) -> Row | None:
    """The row with the completion of another one appended; None where that one's prompt does not
    begin with the row, or the row would be longer than the model reads."""
    ids, so_far = after.prompt_ids, row.length
    first = len(row.prompt_ids)
    begins = ids[:first] == row.prompt_ids and ids[first:so_far] == row.completion_ids
    if not begins or (limit is not None and after.length > limit):
        return None
    reply = ids[so_far:]
    return Row(
        row.prompt_ids,
        # The later prompt holds the images of the earlier one, and those of the replies.
        after.pngs,
        (*row.completion_ids, *reply, *after.completion_ids),
        is_action=(*row.is_action, *(False,) * len(reply), *after.is_action),
        is_reply=(*row.is_reply, *(True,) * len(reply), *after.is_reply),
        responses=row.responses + after.responses,
    )


# To tensors


def lay_out_rows(
    rows: Sequence[Row], encoder: Encoder, device: torch.device, max_tokens: int
) -> list[RowBatch]:
    """Micro-batches of all rows, on the device.

    Responses that stand alone share the rows of equal prompts; whole conversations do not: their
    prompts are short beside them.
    """
    alone = all(all(row.is_action) for row in rows)
    batches: list[RowBatch] = []
    image_of = ImageDecoder()
    examples = [row.unpack(image_of) for row in rows]
    for plan in plan_rows(examples, max_tokens, share_prompts=alone):
        tokens = build_batch([[examples[i] for i in group] for group in plan], encoder)
        order = tuple(i for group in plan for i in group)
        is_action_BT = mark_in_window(tokens, [rows[i].is_action for i in order])
        batches.append(RowBatch(tokens.to(device), is_action_BT.to(device), order))
    return batches


def mark_replies(batch: RowBatch, rows: Sequence[Row]) -> Tensor:
    """Which tokens are the environment's: bool, in the layout of `is_action_BT`.

    Args:
        rows: those that were laid out, all micro-batches'.
    """
    is_reply_BT = mark_in_window(batch.tokens, [rows[i].is_reply for i in batch.order])
    return is_reply_BT.to(batch.is_action_BT.device)
