"""Thought and action spans, from the offsets of the very tokens of each tokenizer."""

import pytest

from forethought.generation.huggingface import HuggingFacePolicy
from forethought.prompts.responses import parse_response
from forethought.types import Completion, FinishReason, ParseFailure

# One of each kind of tokenizer: sentencepiece, byte-level with special tokens, byte-level.
pytestmark = pytest.mark.parametrize("checkpoint", ["llava", "qwen2_5_vl", "gpt2"], indirect=True)

ANSWERS = {
    "plain": '{"thoughts": "so I move", "action": "+"}',
    "as written here": '{\n"current number": "3",\n"thoughts": "3 is smaller",\n"action": "+"\n}',
    "spaces everywhere": '  { "thoughts" : "so" , "action"  :  "+" }  ',
    "characters of several bytes": '{"thoughts": "é ☃ 中 🂡 so", "action": "+"}',
    "one of them touches the key": '{"thoughts": "中"☃"action": "+"}',
    "key in the thoughts, escaped": '{"thoughts": "my \\"action\\": \\"-\\"", "action": "+"}',
    "no thoughts": '{"action": "+"}',
    "nothing before the key": '"action": "+"',
    "quoted while thinking": '{"action": "-"} no</think>{"action": "+"}',
}


def complete(policy: HuggingFacePolicy, token_ids: tuple[int, ...]) -> Completion:
    text, offsets = policy.encoder.detokenize(token_ids)
    return Completion(token_ids, (0.0,) * len(token_ids), offsets, text, FinishReason.STOP, 1.0)


@pytest.mark.parametrize("text", ANSWERS.values(), ids=ANSWERS)
def test_action_span_starts_with_the_token_of_the_key(policy: HuggingFacePolicy, text: str) -> None:
    ids = policy.encoder.tokenize_response(text)
    completion = complete(policy, ids)
    assert completion.text.strip() == text.strip()
    parsed = parse_response(completion, ["+", "-"])
    assert parsed.action == "+"
    thought, action = parsed.thought_span, parsed.action_span
    assert (thought.start, thought.stop, action.stop) == (0, action.start, len(ids))
    key = completion.text.rindex('"action"')
    ends = (*completion.token_offsets[1:], len(completion.text))
    assert completion.token_offsets[action.start] <= key < ends[action.start]


@pytest.mark.parametrize("text", ANSWERS.values(), ids=ANSWERS)
def test_cut_anywhere(policy: HuggingFacePolicy, text: str) -> None:
    """Cut by the length limit, even within a character, text and spans are those of the
    tokens that are there."""
    ids = policy.encoder.tokenize_response(text)
    for length in range(len(ids) + 1):
        completion = complete(policy, ids[:length])
        assert completion.text == policy.encoder.tokenizer.decode(
            list(ids[:length]), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        parsed = parse_response(completion, ["+", "-"])
        thought, action = parsed.thought_span, parsed.action_span
        assert (thought.start, thought.stop, action.stop) == (0, action.start, length)
        if '"action"' not in completion.text:
            assert parsed.failure is ParseFailure.NO_ACTION
            assert len(action) == 0
