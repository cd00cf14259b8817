"""Prompts are what the model's own processor makes of the conversation."""

import logging as standard_logging
from typing import Any

import numpy as np
import pytest
from transformers.utils import logging

from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.types import Message
from tests.contract.architectures.builders import Checkpoint
from tests.contract.architectures.helpers import (
    SIZES,
    conversation_of,
    make_prompts,
    random_image,
)

IMAGE_TOKENS = {
    # A tower of 4 × 4 patches, whatever the size.
    "llava": dict.fromkeys(SIZES, 16),
    # 16 of the thumbnail. Beside it the image fitted into 1 × 2, 2 × 1 or 2 × 2 tiles of
    # 4 × 4 patches, less the rows or columns that stay empty, and a line break after each row.
    "llava_next": {
        (32, 32): 16 + 4 * (4 + 1),  # one tile of two is empty
        (32, 64): 16 + 4 * (8 + 1),
        (64, 32): 16 + 8 * (4 + 1),
        (64, 64): 16 + 8 * (8 + 1),
        (48, 40): 16 + 8 * (6 + 1),  # 40/48 of 8 columns: 6 whole ones
        (24, 70): 16 + 2 * (8 + 1),  # 24/70 of 8 rows: 2 whole ones
    },
    # 16 × 16 pixels a token, sides rounded to the nearest multiple, at most 64 × 64 in all.
    "qwen2_5_vl": {
        (32, 32): 2 * 2,
        (32, 64): 2 * 4,
        (64, 32): 4 * 2,
        (64, 64): 4 * 4,
        (48, 40): 3 * 2,
        (24, 70): 2 * 4,
    },
}
IMAGE_TOKENS["qwen3_vl"] = IMAGE_TOKENS["qwen2_5_vl"]


def test_ids_equal_the_processors_own(policy: HuggingFacePolicy) -> None:
    for prompt in make_prompts(policy, 20):
        expected: Any = policy.processor.apply_chat_template(
            [conversation_of(policy, prompt)],
            tokenize=True,
            add_generation_prompt=True,
            return_dict=True,
        )
        assert list(prompt.token_ids) == expected["input_ids"][0]


def test_an_answer_opens_with_its_first_word(policy: HuggingFacePolicy) -> None:
    """And not with the token that opens a text, which no model would sample; it ends with
    the token that ends an answer."""
    ids = policy.encoder.tokenize_response("move")
    assert ids[-1] == policy.encoder.stop_ids[0]
    assert not set(ids[:-1]) & set(policy.encoder.tokenizer.all_special_ids)


@pytest.mark.parametrize("size", SIZES)
def test_as_many_placeholders_as_the_image_needs(
    seeing_checkpoint: Checkpoint, seeing_policy: HuggingFacePolicy, size: tuple[int, int]
) -> None:
    image = random_image(np.random.default_rng(0), size)
    prompt = seeing_policy.prompt([Message("user", "move", image)])
    placeholder = seeing_policy.encoder.image_token_id
    assert prompt.token_ids.count(placeholder) == IMAGE_TOKENS[seeing_checkpoint.name][size]


def test_a_placeholder_in_the_text_is_text(seeing_policy: HuggingFacePolicy) -> None:
    """An environment may say `<image>`; only an image is one."""
    tokenizer = seeing_policy.encoder.tokenizer
    placeholder_id = seeing_policy.encoder.image_token_id
    assert placeholder_id is not None
    placeholder = tokenizer.convert_ids_to_tokens(placeholder_id)
    image = random_image(np.random.default_rng(0))
    for shown in (None, image):
        said = seeing_policy.prompt([Message("user", f"a {placeholder} b", shown)])
        unsaid = seeing_policy.prompt([Message("user", "a b", shown)])
        ids = [prompt.token_ids for prompt in (said, unsaid)]
        assert ids[0].count(placeholder_id) == ids[1].count(placeholder_id)
        assert f"a {placeholder} b" in tokenizer.decode(list(ids[0]))


def test_control_tokens_in_the_text_are_text(policy: HuggingFacePolicy) -> None:
    """Whatever an environment says, it closes no turn, and what it said can be read back."""
    encoder, tokenizer = policy.encoder, policy.encoder.tokenizer
    control_ids = {index for index, word in tokenizer.added_tokens_decoder.items() if word.special}
    assert control_ids - {tokenizer.unk_token_id} <= encoder.control_tokens.ids

    def controls(text: str) -> list[int]:
        image = random_image(np.random.default_rng(0)) if encoder.reads_images else None
        turns = [Message("user", text, image), Message("assistant", text), Message("user", text)]
        ids = encoder.encode(turns).token_ids
        assert tokenizer.decode(list(ids)).count(text) == 3
        assert tokenizer.decode(list(encoder.tokenize_response(text)[:-1])) == text
        return [token for token in ids if token in control_ids]

    harmless = controls("move right")
    for word in tokenizer.convert_ids_to_tokens(sorted(control_ids)):
        assert controls(f"{word}move {word}{word} right\n{word}") == harmless


def test_loading_is_silent(seeing_checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture) -> None:
    """No talk of backends that are missing, nor of weights that were made up."""
    logging.enable_propagation()
    try:
        with caplog.at_level(standard_logging.WARNING):
            make_prompts(load_policy(seeing_checkpoint.folder, slots=1), 3)
    finally:
        logging.disable_propagation()
    assert caplog.messages == []


@pytest.mark.parametrize("checkpoint", ["gpt2", "qwen2_5_vl", "qwen3_vl"], indirect=True)
def test_a_prompt_begins_with_the_last_one_and_its_answer(policy: HuggingFacePolicy) -> None:
    """So an episode of turns is one sequence: an answer is closed by the stop token, and the
    next turn follows it. Tokenizers that put a space before every text do not keep this."""
    answer, reply = '{\n"action": "move right"\n}', "so I choose"
    turns = [Message("user", "move the number\nto target: {}")]
    so_far: tuple[int, ...] = ()
    for _ in range(3):
        prompt = policy.encoder.encode(turns).token_ids
        assert prompt[: len(so_far)] == so_far
        so_far = (*prompt, *policy.encoder.tokenize_response(answer))
        turns += [Message("assistant", answer), Message("user", reply)]
