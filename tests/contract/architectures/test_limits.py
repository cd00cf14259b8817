"""What a model cannot do is refused in one sentence; what it nearly cannot, it can."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from forethought.configs.parts import LoraConfig
from forethought.errors import ConfigError, ForethoughtError, PolicyError
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.batching import Example
from forethought.models.loading import load_pretrained
from forethought.models.lora import add_lora
from forethought.models.tiny import make_tiny
from forethought.types import Message, Prompt
from tests.contract.architectures.builders import write_mistral
from tests.contract.architectures.conftest import ReadCheckpoint
from tests.contract.architectures.helpers import (
    answer,
    conversation_of,
    generate,
    load,
    random_image,
    score,
)

WINDOW = 24


def prompt_of(policy: HuggingFacePolicy, length: int) -> Prompt:
    """A prompt of exactly this many tokens."""
    words = ["a"]
    while len(policy.prompt([Message("user", " ".join(words))]).token_ids) < length:
        words.append("b" if len(words) % 3 else "the")
    prompt = policy.prompt([Message("user", " ".join(words))])
    assert len(prompt.token_ids) == length
    return prompt


def assert_one_sentence(error: ForethoughtError) -> None:
    assert "\n" not in str(error)
    assert " — " in str(error)


# --- sliding windows ---------------------------------------------------------------------------


@pytest.fixture
def short_sighted(tmp_path: Path) -> HuggingFacePolicy:
    """Mistral with a window of 24 tokens."""
    folder = tmp_path / "mistral"
    folder.mkdir()
    write_mistral(folder, window=WINDOW)
    return load(str(folder))


def test_a_window_that_holds_the_sequence_exactly(short_sighted: HuggingFacePolicy) -> None:
    prompt = prompt_of(short_sighted, WINDOW - 6)
    said = answer(short_sighted, [prompt], [6], temperature=0.0)[0].completion
    assert said.token_ids == generate(short_sighted, conversation_of(short_sighted, prompt), 6)


def test_a_window_that_is_too_short_is_refused(short_sighted: HuggingFacePolicy) -> None:
    prompt = prompt_of(short_sighted, WINDOW - 6)
    with pytest.raises(PolicyError, match="25 tokens, but layer 0 attends to the last 24") as info:
        answer(short_sighted, [prompt], [7], temperature=0.0)
    assert_one_sentence(info.value)


def test_scoring_knows_the_window(short_sighted: HuggingFacePolicy) -> None:
    """In a row of its own a long completion is scored by the model's own mask; a shared row
    has a mask that knows no window."""
    prompt = prompt_of(short_sighted, WINDOW - 6)
    ids = tuple(range(260, 270))
    with torch.inference_mode():
        logits_LV = short_sighted.module.model(torch.tensor([[*prompt.token_ids, *ids]])).logits[0]
    logprobs_TV = logits_LV.log_softmax(-1)[len(prompt.token_ids) - 1 : -1]
    expected = [logprobs_TV[t, token].item() for t, token in enumerate(ids)]
    (scored,) = score(short_sighted, [Example(prompt, ids)])
    assert scored.logprobs == pytest.approx(expected, abs=1e-4)
    with pytest.raises(PolicyError, match="28 tokens, but layer 0 attends to the last 24"):
        score(short_sighted, [Example(prompt, ids), Example(prompt, (300,))], [[[0, 1]]])
    # Whole row 26 tokens, but no completion reaches back beyond the window.
    short = [Example(prompt, ids[:4]), Example(prompt, ids[4:8])]
    together = score(short_sighted, short, [[[0, 1]]])
    for (logprobs, _), (expected_logprobs, _) in zip(
        together, score(short_sighted, short), strict=True
    ):
        assert logprobs == pytest.approx(expected_logprobs, abs=5e-5)


# --- learned positions --------------------------------------------------------------------------


def test_learned_positions_end(checkpoint_of: ReadCheckpoint) -> None:
    policy = load(checkpoint_of("gpt2").folder)
    prompt = prompt_of(policy, 250)
    said = answer(policy, [prompt], [6], temperature=0.0)[0].completion  # up to the 256th
    assert said.token_ids == generate(policy, conversation_of(policy, prompt), 6)
    score(policy, [Example(prompt, (20,) * 6)])
    for go_too_far in (
        lambda: answer(policy, [prompt], [7], temperature=0.0),
        lambda: score(policy, [Example(prompt, (20,) * 7)]),
    ):
        with pytest.raises(PolicyError, match=r"257 tokens, but .* learned 256 positions") as info:
            go_too_far()
        assert_one_sentence(info.value)


def test_rotary_positions_do_not(checkpoint_of: ReadCheckpoint) -> None:
    """1024 in the configuration, which says what the model was trained on."""
    policy = load(checkpoint_of("llama").folder)
    score(policy, [Example(prompt_of(policy, 1020), (20,) * 10)])


def test_strangers_get_no_more_than_what_the_model_was_made_for(
    checkpoint_of: ReadCheckpoint,
) -> None:
    policy = load(checkpoint_of("llama").folder)
    prompt = prompt_of(policy, 1020)
    policy.require_room(prompt, 4)
    with pytest.raises(PolicyError, match="1025 tokens, but this model was made for 1024") as info:
        policy.require_room(prompt, 5)
    assert_one_sentence(info.value)


# --- vocabularies ---------------------------------------------------------------------------------


def test_ids_that_the_tokenizer_lacks(checkpoint_of: ReadCheckpoint) -> None:
    """Vocabularies are padded for speed: what lies behind the tokenizer's last id can be
    sampled, and has no text."""
    policy = load(checkpoint_of("llama").folder)
    prompts = [prompt_of(policy, 20)] * 20
    results = answer(policy, prompts, [40] * 20, temperature=20.0)
    nameless = [
        (offset, offsets_after)
        for result in results.values()
        for token, offset, offsets_after in zip(
            result.completion.token_ids,
            result.completion.token_offsets,
            (*result.completion.token_offsets[1:], len(result.completion.text)),
            strict=True,
        )
        if token >= len(policy.encoder.tokenizer)
    ]
    assert nameless
    assert all(start == stop for start, stop in nameless)


def test_either_stop_token_stops(checkpoint_of: ReadCheckpoint) -> None:
    """Llama's generation config lists two, its tokenizer names one of them."""
    policy = load(checkpoint_of("llama").folder)
    assert policy.encoder.stop_ids == (2, 3)
    prompts = [prompt_of(policy, 20)] * 60
    results = answer(policy, prompts, [60] * 60, temperature=20.0)
    completions = [result.completion for result in results.values()]
    last = {ids[-1] for ids in (c.token_ids for c in completions) if len(ids) < 60}
    assert last == {2, 3}
    assert not any({2, 3} & set(c.token_ids[:-1]) for c in completions)


def test_no_padding_token_is_needed(checkpoint_of: ReadCheckpoint) -> None:
    for name in ("gpt2", "llama", "mistral"):
        policy = load_policy(checkpoint_of(name).folder, slots=1)
        assert policy.encoder.tokenizer.pad_token_id is None
        assert policy.encoder.pad_id not in policy.encoder.tokenizer.all_special_ids


def test_spaces_are_not_cleaned_up(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    """A tokenizer may be set to print "a ." as "a.": offsets would not fit the tokens."""
    folder = shutil.copytree(checkpoint_of("gpt2").folder, tmp_path / "gpt2")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["clean_up_tokenization_spaces"] = True
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    policy = load_policy(str(folder), slots=1)
    text = "so , I move . right ? it 's"
    assert policy.encoder.detokenize(policy.encoder.tokenize_response(text)).text == text


# --- what is not there -----------------------------------------------------------------------


def test_an_image_for_a_model_of_words(checkpoint_of: ReadCheckpoint) -> None:
    policy = load_policy(checkpoint_of("llama").folder, slots=1)
    image = random_image(np.random.default_rng(0))
    with pytest.raises(
        PolicyError, match="this is a text-only model, but the prompt has 1"
    ) as info:
        policy.prompt([Message("user", "look", image)])
    assert_one_sentence(info.value)


def test_a_vision_model_without_template(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint_of("llava").folder, tmp_path / "llava")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(PolicyError, match="no chat template") as info:
        load_policy(str(folder), slots=1)
    assert_one_sentence(info.value)


def test_a_model_that_never_stops(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint_of("gpt2").folder, tmp_path / "gpt2")
    (folder / "generation_config.json").unlink(missing_ok=True)
    for name in ("config.json", "tokenizer_config.json"):
        settings = json.loads((folder / name).read_text())
        settings |= {key: None for key in settings if key in ("eos_token", "eos_token_id")}
        (folder / name).write_text(json.dumps(settings))
    with pytest.raises(PolicyError, match="end-of-sequence"):
        load_policy(str(folder), slots=1)


def no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\0" * 100)


def unknown_architecture(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "unheard_of"}')


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(shutil.rmtree, "does not exist here", id="no such folder"),
        pytest.param(no_config, "cannot be loaded", id="no config"),
        pytest.param(no_weights, "cannot be loaded", id="weights overwritten"),
        pytest.param(unknown_architecture, "cannot be loaded", id="unknown architecture"),
    ],
)
def test_a_folder_that_cannot_be_loaded(
    damage: Callable[[Path], object], message: str, checkpoint_of: ReadCheckpoint, tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoint_of("llama").folder, tmp_path / "llama")
    damage(folder)
    with pytest.raises(PolicyError, match=message) as info:
        load_policy(str(folder), slots=1)
    assert "\n" not in str(info.value)


# --- adapters ---------------------------------------------------------------------------------


def test_adapters_without_their_base(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    base = shutil.copytree(checkpoint_of("llama").folder, tmp_path / "base")
    loaded = load_pretrained(str(base))
    adapter = add_lora(loaded.model, LoraConfig(components=("language_model",), rank=2), seed=0)
    HuggingFacePolicy(loaded._replace(adapter=adapter), slots=1).save(tmp_path / "adapter")
    shutil.rmtree(base)
    with pytest.raises(PolicyError, match="adapters without their base") as info:
        load_policy(str(tmp_path / "adapter"), slots=1)
    assert str(base) in str(info.value)
    assert_one_sentence(info.value)


def test_adapters_on_a_randomly_initialized_model() -> None:
    model, _, _ = make_tiny(["move the number"], seed=0)
    with pytest.raises(ConfigError, match="is randomly initialized") as info:
        add_lora(model, LoraConfig(components=("language_model",)), seed=0)
    assert_one_sentence(info.value)


def test_equal_seeds_give_equal_adapters(checkpoint_of: ReadCheckpoint) -> None:
    config = LoraConfig(components=("language_model",), rank=2)

    def fresh(seed: int) -> list[float]:
        model = load_pretrained(checkpoint_of("llama").folder).model
        torch.rand(1)
        before = torch.get_rng_state()
        add_lora(model, config, seed=seed)
        assert torch.get_rng_state().equal(before)  # borrowed, and given back
        return [p.sum().item() for name, p in model.named_parameters() if "lora_A" in name]

    assert fresh(0) == fresh(0) != fresh(1)


def test_frozen_weights_may_be_coarse(checkpoint_of: ReadCheckpoint) -> None:
    """bf16 below, fp32 what is trained."""
    loaded = load_pretrained(checkpoint_of("llava_next").folder, dtype=torch.bfloat16)
    config = LoraConfig(components=("vision_tower", "projector", "language_model"), rank=2)
    add_lora(loaded.model, config, seed=0)
    for name, parameter in loaded.model.named_parameters():
        assert parameter.dtype is (torch.float32 if parameter.requires_grad else torch.bfloat16), (
            name
        )
