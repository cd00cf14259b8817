"""Logits in chunks: the same numbers and gradients as all at once, and never more at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    Cohere2Config,
    Cohere2ForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)

from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.losses.elements import masked_mean
from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import Example, TokenBatch, build_batch
from forethought.models.encoding import Encoder
from forethought.models.projection import Projection
from forethought.types import Prompt

ROWS = 3
"""Of logits that are allowed at a time: 11 completions of up to 9 tokens are many chunks."""

Tiny = tuple[ActorCritic, Encoder]
MakePrompts = Callable[[int], list[Prompt]]


@pytest.fixture
def batch(tiny: Tiny, make_prompts: MakePrompts) -> TokenBatch:
    """Five prompts, some with several completions, one of them empty; two tokens held."""
    rng = np.random.default_rng(4)
    rows: list[list[Example]] = []
    for prompt, completions in zip(make_prompts(5), (1, 3, 2, 4, 1), strict=True):
        lengths = rng.integers(1, 10, size=completions)
        rows.append([Example(prompt, tuple(rng.integers(6, 60, size=n).tolist())) for n in lengths])
    first = rows[0][0]
    ids = first.completion_ids
    held = (tuple({ids[0], 7, 8}), *(None,) * (len(ids) - 1))
    rows[0][0] = replace_held(first, held)
    rows[-1].append(Example(rows[-1][0].prompt, ()))
    return build_batch(rows, tiny[1])


def replace_held(example: Example, held: tuple[tuple[int, ...] | None, ...]) -> Example:
    return example._replace(allowed_ids=held)


def learn(module: ActorCritic, batch: TokenBatch, **settings: Any) -> tuple[Tensor, Tensor, Any]:
    """Token-mean loss with an entropy bonus and a critic's share, and its gradient."""
    module.zero_grad()
    scores = module(batch, temperature=0.7, entropy_gradient=True, **settings)
    loss = token_mean_cross_entropy(logprobs_BT=scores.logprobs_BT, mask_BT=batch.mask_BT).loss
    entropy = masked_mean(values=scores.entropies_BT, mask=batch.mask_BT)
    (loss - 0.3 * entropy + scores.values_B.mean()).backward()
    gradient = torch.cat(
        [p.grad.flatten() for p in module.parameters() if p.grad is not None]
    ).clone()
    return loss.detach(), gradient, scores


def test_loss_and_gradient_are_those_of_all_logits_at_once(tiny: Tiny, batch: TokenBatch) -> None:
    module = tiny[0]
    loss, gradient, scores = learn(module, batch)
    module.largest_projection = ROWS * module.vocabulary
    chunked_loss, chunked_gradient, chunked = learn(module, batch)
    assert chunked_loss.item() == pytest.approx(loss.item(), abs=1e-6)
    assert gradient.norm() > 0.1
    assert (chunked_gradient - gradient).norm() <= 1e-6 * gradient.norm()
    for ours, expected in zip(chunked, scores, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


def test_entropies_have_no_gradient_unless_asked(tiny: Tiny, batch: TokenBatch) -> None:
    module = tiny[0]
    for largest in (2**24, 1):
        module.largest_projection = largest
        assert not module(batch).entropies_BT.requires_grad
        assert module(batch, entropy_gradient=True).entropies_BT.requires_grad


@contextmanager
def counted(module: ActorCritic) -> Iterator[list[int]]:
    """Positions that go through the projection at a time."""
    seen: list[int] = []
    projection = module.model.get_output_embeddings()
    assert isinstance(projection, nn.Module)
    hook = projection.register_forward_hook(
        lambda _m, _i, output: seen.append(output.shape[:-1].numel())
    )
    try:
        yield seen
    finally:
        hook.remove()


def test_no_more_logits_than_allowed_are_made_at_a_time(tiny: Tiny, batch: TokenBatch) -> None:
    module = tiny[0]
    tokens = int(batch.mask_BT.sum())
    module.largest_projection = ROWS * module.vocabulary
    with counted(module) as seen:
        learn(module, batch)
    at_first = len(batch.input_ids_RL)  # one position a row, to compare
    assert seen[0] == at_first
    assert max(seen[2:]) == ROWS
    # Once forwards and once more backwards; the one held token fits into a chunk. Before that
    # a position a row, and the comparison.
    assert sum(seen) == 2 * at_first + 2 * tokens + 1


def test_few_logits_are_made_at_once_as_they_always_were(tiny: Tiny, batch: TokenBatch) -> None:
    with counted(tiny[0]) as seen:
        learn(tiny[0], batch)
    assert seen == [len(batch.input_ids_RL) * len(batch.window)]


def test_hidden_states_alone_make_no_logits(tiny: Tiny, batch: TokenBatch) -> None:
    module = tiny[0]
    module.action_hidden(batch, batch.mask_BT)  # the first time is compared
    with counted(module) as seen:
        hidden_NH = module.action_hidden(batch, batch.mask_BT)
        assert seen == [len(batch.input_ids_RL)]
        logprobs_NV = module.project(hidden_NH)
    own_N = logprobs_NV.gather(1, batch.targets_BT[batch.mask_BT][:, None])[:, 0]
    expected = module(batch._replace(held=None)).logprobs_BT[batch.mask_BT]
    torch.testing.assert_close(own_N, expected, rtol=1e-5, atol=1e-5)


def test_normalizers_are_of_all_tokens(tiny: Tiny, batch: TokenBatch) -> None:
    module = tiny[0]
    hidden_NH = module.action_hidden(batch, batch.mask_BT)
    expected = module.logits(hidden_NH).logsumexp(-1)
    module.largest_projection = 1
    torch.testing.assert_close(module.log_normalizers(hidden_NH), expected, rtol=1e-5, atol=1e-5)


SMALL: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "initializer_range": 0.3,
}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: LlamaForCausalLM(LlamaConfig(**SMALL)), id="plain"),
        pytest.param(
            lambda: Gemma2ForCausalLM(
                Gemma2Config(**SMALL, head_dim=8, final_logit_softcapping=2.0)
            ),
            id="capped",
        ),
        pytest.param(lambda: Cohere2ForCausalLM(Cohere2Config(**SMALL, logit_scale=0.25)), id="x"),
        pytest.param(
            lambda: GraniteForCausalLM(GraniteConfig(**SMALL, logits_scaling=4.0)), id="divided"
        ),
    ],
)
def test_logits_are_the_models_own(make: Callable[[], PreTrainedModel]) -> None:
    torch.manual_seed(0)
    model = make().eval()
    projection = Projection(model)
    ids = torch.arange(3, 15).view(2, 6)
    with torch.no_grad():
        expected = model(input_ids=ids).logits
        hidden = projection.leave_out(lambda: model(input_ids=ids).logits)
        torch.testing.assert_close(projection(hidden), expected)


def test_what_is_not_known_of_a_model_is_an_error_not_a_number() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    projection = Projection(model)
    ids = torch.arange(3, 15).view(2, 6)
    with pytest.raises(RuntimeError, match="not known here — known are final_logit_softcapping"):
        projection.leave_out(lambda: model(input_ids=ids).logits + 1.0)
