"""The decode loop against Hugging Face `generate` and against a fresh forward pass."""

from typing import Any

import numpy as np
import pytest
import torch

from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.decoding import DecodeLoop
from forethought.generation.sampling import draw_tokens
from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import Example, build_batch
from forethought.models.encoding import Encoder
from forethought.types import FinishReason, Prompt
from tests.unit.models.conftest import MakePrompts

Tiny = tuple[ActorCritic, Encoder]


def answer(
    tiny: Tiny,
    prompts: list[Prompt],
    *,
    slots: int,
    temperature: float,
    limits: list[int],
) -> dict[int, GenerationResult]:
    loop = DecodeLoop(*tiny, slots=slots)
    for key, (prompt, limit) in enumerate(zip(prompts, limits, strict=True)):
        loop.submit(GenerationRequest(key, prompt, 1000 + key, limit, temperature))
    results: dict[int, GenerationResult] = {}
    while loop.pending:
        results |= {result.key: result for result in loop.advance()}
    return results


def limits_for(prompts: list[Prompt]) -> list[int]:
    return np.random.default_rng(2).integers(2, 24, size=len(prompts)).tolist()


def test_greedy_equals_generate_on_100_prompts_of_unequal_length_with_images(
    tiny: Tiny, make_prompts: MakePrompts
) -> None:
    module, encoder = tiny
    model: Any = module.model
    prompts = make_prompts(100)
    limits = limits_for(prompts)
    results = answer(tiny, prompts, slots=16, temperature=0.0, limits=limits)
    for key, (prompt, limit) in enumerate(zip(prompts, limits, strict=True)):
        ids = torch.tensor([prompt.token_ids])
        expected = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=limit,
            do_sample=False,
            suppress_tokens=[model.config.image_token_id],
            **encoder.image_inputs(prompt.images),
        )[0, len(prompt.token_ids) :]
        assert results[key].completion.token_ids == tuple(expected.tolist())
    # The random model must not make this easy by saying the same to everyone.
    assert len({result.completion.token_ids[:3] for result in results.values()}) > 20


def test_sampled_logprobs_and_values_equal_a_fresh_forward_pass(
    tiny: Tiny, make_prompts: MakePrompts
) -> None:
    prompts = make_prompts(40)
    temperature = 0.7
    results = answer(tiny, prompts, slots=8, temperature=temperature, limits=limits_for(prompts))
    for key, result in results.items():
        example = Example(prompts[key], result.completion.token_ids)
        with torch.inference_mode():
            scores = tiny[0](build_batch([[example]], tiny[1]), temperature=temperature)
        assert scores.logprobs_BT[0].tolist() == pytest.approx(result.completion.logprobs, abs=1e-4)
        assert scores.values_B is not None
        assert scores.values_B[0].item() == pytest.approx(result.value, abs=1e-4)


def test_an_answer_does_not_depend_on_what_is_generated_beside_it(
    tiny: Tiny, make_prompts: MakePrompts
) -> None:
    prompts = make_prompts(24)
    limits = limits_for(prompts)
    together = answer(tiny, prompts, slots=24, temperature=1.0, limits=limits)
    few_slots = answer(tiny, prompts, slots=3, temperature=1.0, limits=limits)
    for key in together:
        assert together[key].completion.token_ids == few_slots[key].completion.token_ids


def test_equal_prompts_with_other_seeds_get_other_answers(
    tiny: Tiny, make_prompts: MakePrompts
) -> None:
    prompts = make_prompts(1) * 12
    results = answer(tiny, prompts, slots=4, temperature=1.0, limits=[10] * 12)
    assert len({result.completion.token_ids for result in results.values()}) > 6
    assert len({result.value for result in results.values()}) == 1


def test_what_comes_between_two_tokens_joins_in(tiny: Tiny, make_prompts: MakePrompts) -> None:
    long, short = make_prompts(2)
    loop = DecodeLoop(*tiny, slots=8)
    loop.submit(GenerationRequest(0, long, 1000, 12, 1.0))
    assert [loop.step() for _ in range(3)] == [[], [], []]
    loop.submit(GenerationRequest(1, short, 1001, 2, 1.0))
    assert [[one.key for one in loop.step()] for _ in range(2)] == [[], [1]]
    (result,) = loop.advance()
    alone = answer(tiny, [long], slots=8, temperature=1.0, limits=[12])
    assert result.completion.token_ids == alone[0].completion.token_ids


def test_zero_new_tokens_gives_the_value_alone(tiny: Tiny, make_prompts: MakePrompts) -> None:
    prompts = make_prompts(3)
    valued = answer(tiny, prompts, slots=2, temperature=1.0, limits=[0, 0, 0])
    spoken = answer(tiny, prompts, slots=2, temperature=1.0, limits=[5, 5, 5])
    for key in range(3):
        assert valued[key].completion.token_ids == ()
        assert valued[key].value == pytest.approx(spoken[key].value, abs=1e-5)


def test_an_image_placeholder_is_never_sampled(tiny: Tiny, make_prompts: MakePrompts) -> None:
    """It would be counted as an image when the completion is scored."""
    prompts = make_prompts(20)
    results = answer(tiny, prompts, slots=20, temperature=100.0, limits=[100] * 20)
    spoken = {token for result in results.values() for token in result.completion.token_ids}
    assert len(spoken) > 150
    assert tiny[0].model.config.image_token_id not in spoken


def test_finish_reason_and_text(tiny: Tiny, make_prompts: MakePrompts) -> None:
    prompts = make_prompts(30)
    results = answer(tiny, prompts, slots=8, temperature=3.0, limits=[60] * 30)
    reasons = {result.completion.finish_reason for result in results.values()}
    assert FinishReason.LENGTH in reasons
    for result in results.values():
        completion = result.completion
        stopped = completion.token_ids[-1] in tiny[1].stop_ids
        assert (completion.finish_reason is FinishReason.STOP) == stopped
        assert not any(token in tiny[1].stop_ids for token in completion.token_ids[:-1])
        assert completion.text == tiny[1].tokenizer.decode(
            list(completion.token_ids), skip_special_tokens=True
        )


def test_rows_that_outgrow_the_cache_are_kept(tiny: Tiny, make_prompts: MakePrompts) -> None:
    short, long = sorted(make_prompts(20), key=lambda prompt: len(prompt.token_ids))[::19]
    loop = DecodeLoop(*tiny, slots=2)
    loop.submit(GenerationRequest(0, short, 5, 40, 0.0))
    loop.submit(GenerationRequest(1, short, 5, 2, 0.0))
    results = {result.key: result for result in loop.advance()}  # 1 is done, 0 goes on
    assert set(results) == {1}
    loop.submit(GenerationRequest(2, long, 5, 60, 0.0))
    while loop.pending:
        results |= {result.key: result for result in loop.advance()}
    alone = answer(tiny, [short, long], slots=1, temperature=0.0, limits=[40, 60])
    assert results[0].completion.token_ids == alone[0].completion.token_ids
    assert results[2].completion.token_ids == alone[1].completion.token_ids


@pytest.mark.parametrize(
    ("uniform", "token"),
    [
        pytest.param(0.0, 0, id="start of the first interval"),
        pytest.param(0.249, 0, id="inside the first"),
        pytest.param(0.251, 1, id="inside the second"),
        pytest.param(0.751, 3, id="the third has no mass and is skipped"),
        pytest.param(0.9999999, 3, id="end of the last"),
    ],
)
def test_inverse_transform(uniform: float, token: int) -> None:
    drawn = draw_tokens(
        logits_BV=torch.tensor([[0.25, 0.5, 0.0, 0.25]]).log(),
        temperatures_B=torch.ones(1),
        uniforms_B=torch.tensor([uniform]),
    )
    assert drawn.ids_B.item() == token
    assert drawn.logprobs_B.exp().item() == pytest.approx([0.25, 0.5, 0.0, 0.25][token])


def test_temperature_divides_the_logits_and_zero_is_greedy() -> None:
    logits_BV = torch.tensor([[1.0, 2.0], [1.0, 2.0]])
    drawn = draw_tokens(
        logits_BV=logits_BV,
        temperatures_B=torch.tensor([0.5, 0.0]),
        uniforms_B=torch.tensor([0.0, 0.0]),
    )
    assert drawn.ids_B.tolist() == [0, 1]
    # p(0) = e^2 / (e^2 + e^4) = 0.1192; greedy: p(1) at temperature 1 = 0.7311.
    assert drawn.logprobs_B.exp().tolist() == pytest.approx([0.119203, 0.731059], abs=1e-5)
