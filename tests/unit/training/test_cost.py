"""Memory and time of an update, predicted without doing it, against what real operations do."""

from typing import Any, Literal

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import TokenBatch
from forethought.models.loading import LoadedModel
from forethought.training import cost as prediction
from forethought.training.cost import Allocations, seconds_of, update_cost
from forethought.training.processes import attention_for

ROWS, PROMPT, RESPONSE = 3, 20, 10


def make_model() -> LlamaForCausalLM:
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=176,
        num_hidden_layers=2,
        num_attention_heads=2,
        vocab_size=500,
    )
    return LlamaForCausalLM._from_config(config, attn_implementation="sdpa")  # pyright: ignore


def make_batch() -> TokenBatch:
    length = PROMPT + RESPONSE
    ids_RL = torch.arange(ROWS * length).reshape(ROWS, length)
    groups_RL = torch.zeros_like(ids_RL)
    groups_RL[:, PROMPT:] = 1
    window = torch.arange(PROMPT - 1, length)
    starts_R1 = torch.arange(ROWS)[:, None] * len(window)
    return TokenBatch(
        input_ids_RL=ids_RL,
        places_RL=torch.arange(length).expand(ROWS, length),
        groups_RL=groups_RL,
        window=window,
        sources_BT=starts_R1 + torch.arange(RESPONSE),
        targets_BT=ids_RL[:, PROMPT:],
        mask_BT=torch.ones(ROWS, RESPONSE, dtype=torch.bool),
        value_sources_B=starts_R1[:, 0],
        images={},
        is_shared=False,
    )


@pytest.mark.parametrize("recomputes", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_allocation_is_predicted(
    precision: Literal["fp32", "bf16"], recomputes: bool
) -> None:
    model: Any = make_model()
    if recomputes:
        model.activation_checkpointing_enable({"use_reentrant": False})
    module = ActorCritic(model, None)
    module.without_dropout()
    real = Allocations()
    with attention_for(precision, "cpu", recomputes=recomputes), real:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            scores = module(make_batch())
        loss = scores.logprobs_BT.sum() + scores.entropies_BT.sum()
        del scores
        loss.backward()
    with torch.device("meta"):
        outline = LoadedModel(make_model(), None)  # pyright: ignore[reportArgumentType]
    cost = update_cost(
        outline,
        make_batch(),
        critic=False,
        precision=precision,
        recomputes=recomputes,
        micro_batches=1,
    )
    assert cost.peak == pytest.approx(real.peak, rel=0.005)  # Indices are not quite the same.
    size = sum(parameter.nbytes for parameter in model.parameters())
    assert (cost.weights, cost.moments) == (size, 2 * size)
    # Of three products that a linear layer takes, two are of the backward pass; a layer that is
    # recomputed takes a fourth.
    inside = sum(p.numel() for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n)
    assert cost.flops > (7 if recomputes else 5) * ROWS * PROMPT * inside


def test_a_view_of_what_was_there_is_no_allocation() -> None:
    """64 rows of 8 numbers, not the matrix of 512 × 8 that a linear layer turns on its side."""
    weights, inputs = torch.zeros(8, 512), torch.zeros(64, 512)
    tracked = Allocations()
    with tracked:
        outputs = inputs @ weights.t()
    assert tracked.peak == outputs.nbytes == 64 * 8 * 4


def test_time_is_that_of_each_operation_times_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view does nothing, and each operation costs a thousandth of a thousand small ones."""
    tracked = Allocations()
    with tracked:
        for _ in range(3):
            torch.zeros(4, 8) @ torch.zeros(2, 8).t()
    timed: list[Any] = []

    def fastest(work: Any) -> float:
        timed.append(work())
        return 1.0

    monkeypatch.setattr(prediction, "fastest", fastest)
    assert tracked.operations.total() == 12
    assert seconds_of(tracked.operations) == pytest.approx(12 / 1000 + 9)
    assert [tuple(result.shape) for result in timed[1:]] == [(4, 8), (2, 8), (4, 2)]


def test_an_operation_that_its_content_decides_costs_its_call_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mask of zeros chooses nothing, and the two values have no place."""
    mask, values = torch.tensor([True, False, True]), torch.ones(2)
    tracked = Allocations()
    with tracked:
        torch.zeros(3).index_put_((mask,), values)

    def fastest(work: Any) -> float:
        work()
        return 1.0

    monkeypatch.setattr(prediction, "fastest", fastest)
    assert seconds_of(tracked.operations) == pytest.approx(2 / 1000 + 1)


def test_a_long_product_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "LONGEST", 2 * 4 * 8 * 2 - 1)
    monkeypatch.setattr(prediction, "fastest", lambda work: 1.0)
    tracked = Allocations()
    left, right = torch.zeros(4, 8), torch.zeros(8, 2)
    with tracked:
        left @ right
    # 512 × 512 × 512 took a second: 128 operations take so much less.
    assert seconds_of(tracked.operations) == pytest.approx(1 / 1000 + 128 / (2 * 512**3))
