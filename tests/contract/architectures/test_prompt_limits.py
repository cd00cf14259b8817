"""A prompt that is too long is refused by the encoder: in one line, and before it is read whole."""

import shutil
from pathlib import Path

import pytest

from forethought.errors import PromptTooLongError
from forethought.generation.huggingface import load_policy
from forethought.types import Message
from tests.contract.architectures.conftest import ReadCheckpoint
from tests.contract.architectures.test_limits import assert_one_sentence, prompt_of


@pytest.mark.parametrize(("name", "positions"), [("gpt2", 256), ("llama", 1024), ("llava", 1024)])
def test_a_prompt_leaves_a_position_for_its_answer(
    name: str, positions: int, checkpoint_of: ReadCheckpoint
) -> None:
    policy = load_policy(checkpoint_of(name).folder, slots=1)
    words = prompt_of(policy, positions - 1).messages[0].text
    with pytest.raises(PromptTooLongError) as info:
        policy.prompt([Message("user", f"{words} the")])
    assert f"the prompt has {positions:,} tokens, but the model takes {positions:,}" in str(
        info.value
    )
    assert_one_sentence(info.value)


@pytest.mark.parametrize("name", ["gpt2", "llama", "llava"])
def test_megabytes_are_not_tokenized_to_be_refused(
    name: str, checkpoint_of: ReadCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = load_policy(checkpoint_of(name).folder, slots=1)
    read: list[int] = []
    encode = policy.encoder.tokenizer.encode

    def note(text: str, **settings: bool) -> list[int]:
        read.append(len(text))
        return encode(text, **settings)

    monkeypatch.setattr(policy.encoder.tokenizer, "encode", note)
    monkeypatch.setattr(type(policy.encoder.tokenizer), "__call__", None)
    huge = "move the number " * 200_000
    for use in (
        lambda: policy.prompt([Message("user", huge)]),
        lambda: policy.encoder.tokenize_response(huge),
    ):
        with pytest.raises(PromptTooLongError, match=r"3,200,\d+ characters, has at least") as info:
            use()
        assert_one_sentence(info.value)
    assert max(read) <= 8 * 1024


def test_few_tokens_may_be_many_characters(checkpoint_of: ReadCheckpoint) -> None:
    """What is refused by its beginning is refused by tokens, never by characters."""
    policy = load_policy(checkpoint_of("gpt2").folder, slots=1)
    tokenizer = policy.encoder.tokenizer
    tokenizer.add_tokens(["-" * 100])
    assert len(policy.prompt([Message("user", "-" * 20_000)]).token_ids) < 256


def test_a_template_that_repeats_itself(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint_of("llama").folder, tmp_path / "llama")
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").write_text(
        "{% for i in range(2000) %}" + template + "{% endfor %}"
    )
    with pytest.raises(PromptTooLongError, match="but the model takes 1,024 positions") as info:
        load_policy(str(folder), slots=1).prompt([Message("user", "go")])
    assert_one_sentence(info.value)
