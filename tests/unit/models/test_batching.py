"""Completions that share a row are scored as if each had one of its own."""

import numpy as np
import pytest
import torch

from forethought.models.actor_critic import ActorCritic, attention_mask
from forethought.models.batching import (
    Example,
    Rows,
    build_batch,
    place_in_window,
    plan_rows,
)
from forethought.models.encoding import Encoder
from forethought.types import Prompt
from tests.unit.models.conftest import MakePrompts

Tiny = tuple[ActorCritic, Encoder]


def sample_examples(prompts: list[Prompt], encoder: Encoder) -> list[Example]:
    rng = np.random.default_rng(3)
    examples = [
        Example(prompt, tuple(rng.integers(10, 200, size=int(rng.integers(1, 12))).tolist()))
        for prompt in prompts
        for _ in range(int(rng.integers(1, 5)))
    ]
    return [examples[index] for index in rng.permutation(len(examples))]


def score(
    tiny: Tiny, examples: list[Example], batches: list[Rows]
) -> tuple[list[list[float]], dict[str, torch.Tensor]]:
    """Per example its log-probs and value; and the gradient of their sum."""
    module, encoder = tiny
    module.zero_grad()
    numbers: list[list[float]] = [[] for _ in examples]
    for rows in batches:
        batch = build_batch([[examples[i] for i in row] for row in rows], encoder)
        scores = module(batch)
        for position, index in enumerate(i for row in rows for i in row):
            logprobs_T = scores.logprobs_BT[position][batch.mask_BT[position]]
            numbers[index] = [*logprobs_T.tolist(), scores.values_B[position].item()]
        (scores.logprobs_BT.sum() + scores.values_B.sum()).backward()
    gradients = {
        name: parameter.grad.clone()
        for name, parameter in module.named_parameters()
        if parameter.grad is not None
    }
    return numbers, gradients


def test_shared_rows_equal_single_rows_in_value_and_gradient(
    tiny: Tiny, make_prompts: MakePrompts
) -> None:
    examples = sample_examples(make_prompts(6), tiny[1])
    shared = plan_rows(examples, max_tokens=1500)
    assert max(len(row) for rows in shared for row in rows) > 1
    together, gradients = score(tiny, examples, shared)
    apart, expected = score(tiny, examples, [[[index]] for index in range(len(examples))])
    for a, b in zip(together, apart, strict=True):
        # fp32: a row of another width sums in another order, and these logits are large.
        assert a == pytest.approx(b, abs=1e-4)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        scale = expected[name].abs().max()
        assert (gradient - expected[name]).abs().max() <= 1e-3 * scale + 1e-4, name


def test_plan_keeps_every_example_once_and_within_the_limit(
    tiny: Tiny, make_prompts: MakePrompts
) -> None:
    examples = sample_examples(make_prompts(10), tiny[1])
    batches = plan_rows(examples, max_tokens=400)
    planned = [index for rows in batches for row in rows for index in row]
    assert sorted(planned) == list(range(len(examples)))
    for rows in batches:
        batch = build_batch([[examples[i] for i in row] for row in rows], tiny[1])
        assert len(rows) == 1 or batch.input_ids_RL.numel() <= 400
        for row in rows:
            assert len({examples[index].prompt.key for index in row}) == 1


def test_a_row_longer_than_the_limit_stands_alone(tiny: Tiny, make_prompts: MakePrompts) -> None:
    prompts = make_prompts(2)
    examples = [Example(prompts[0], (11,) * 50), Example(prompts[1], (11,))]
    assert plan_rows(examples, max_tokens=64) in ([[[1]], [[0]]], [[[0]], [[1]]])


def test_attention_mask_of_two_completions(tiny: Tiny, make_prompts: MakePrompts) -> None:
    prompt = Prompt((), (20, 21))
    batch = build_batch([[Example(prompt, (30, 31)), Example(prompt, (40,))]], tiny[1])
    assert batch.groups_RL.tolist() == [[0, 0, 1, 1, 2]]
    assert batch.places_RL.tolist() == [[0, 1, 2, 3, 2]]
    assert attention_mask(batch)[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 0, 0, 1],
    ]


def test_window_and_sources(tiny: Tiny) -> None:
    """Two rows: prompt of 3 with completions (a b) and (c), prompt of 2 with (d e f)."""
    first, second = Prompt((), (20, 21, 22)), Prompt((), (23, 24))
    batch = build_batch(
        [[Example(first, (31, 32)), Example(first, (33,))], [Example(second, (34, 35, 36))]],
        tiny[1],
    )
    assert batch.window.tolist() == [1, 2, 3, 4, 5]  # from the last token of the shorter prompt
    # Flat index = row * 5 + position - 1. a after position 2, b after a (3), c after 2 again.
    assert batch.sources_BT.tolist() == [[1, 2, 0], [1, 0, 0], [5, 6, 7]]
    assert batch.targets_BT.tolist() == [[31, 32, 0], [33, 0, 0], [34, 35, 36]]
    assert batch.mask_BT.int().tolist() == [[1, 1, 0], [1, 0, 0], [1, 1, 1]]
    assert batch.value_sources_B.tolist() == [1, 1, 5]
    assert place_in_window(batch, [[1, 2], [3], [4, 5, 6]]).tolist() == [
        [1, 2, 0],
        [3, 0, 0],
        [4, 5, 6],
    ]
    with pytest.raises(ValueError, match="one number per completion token"):
        place_in_window(batch, [[1], [3], [4, 5, 6]])


def test_bare_prompts_have_a_value_and_no_tokens(tiny: Tiny, make_prompts: MakePrompts) -> None:
    prompts = make_prompts(3)
    batch = build_batch([[Example(prompt, ())] for prompt in prompts], tiny[1])
    scores = tiny[0](batch)
    assert scores.logprobs_BT.shape == (3, 0)
    assert scores.values_B is not None
    assert scores.values_B.shape == (3,)
