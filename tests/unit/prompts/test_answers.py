"""The form of an answer: what is written is read back, and any text is read somehow."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forethought.environments.contract import ExpertAction
from forethought.prompts.responses import parse_response, write_response
from forethought.types import Completion, FinishReason, ParseFailure, Span


def said(text: str, pieces: Sequence[str] | None = None) -> Completion:
    """A completion of these tokens, by default one per character."""
    tokens = list(text) if pieces is None else list(pieces)
    assert "".join(tokens) == text
    starts = [sum(map(len, tokens[:index])) for index in range(len(tokens))]
    ids = tuple(range(len(tokens)))
    return Completion(ids, (0.0,) * len(ids), tuple(starts), text, FinishReason.STOP, 1.0)


# --- the action --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "action"),
    [
        pytest.param('{"action": "+"}', "+", id="alone"),
        pytest.param('{\n"thoughts": "so",\n"action": "+"\n}', "+", id="after thoughts"),
        pytest.param('"action":"+"', "+", id="no braces, no space"),
        pytest.param('"action" \n : \t "+"', "+", id="white space around the colon"),
        pytest.param('"action": " + "', "+", id="white space around the value"),
        pytest.param('{"action": "+"', "+", id="cut before the brace"),
        pytest.param('{"action": "+"}\n \n', "+", id="white space at the end"),
        pytest.param('```json\n{"action": "+"}\n```\n', "+", id="a fence that was opened"),
        pytest.param(
            'Thought: so.\nAction: {"action": "+"}', "+", id="after thoughts in free words"
        ),
        pytest.param(
            '{"action": "-"}? No.</think>{"action": "+"}', "+", id="quoted while thinking"
        ),
        pytest.param('"action": -, "action": "+"', "+", id="a key without a string is no field"),
        pytest.param('"a": "my \\"action\\": \\"-\\"", "action": "+"', "+", id="escaped key"),
        pytest.param('"thoughts": "-", "action": "\\u002b"', "+", id="escaped character"),
    ],
)
def test_valid(text: str, action: str) -> None:
    parsed = parse_response(said(text), ["+", "-"])
    assert (parsed.action, parsed.is_valid, parsed.failure) == (action, True, None)
    assert not parsed.was_randomized


@pytest.mark.parametrize(
    ("text", "action"),
    [
        pytest.param('"action": "*"', "*", id="another word"),
        pytest.param('"action": ""', "", id="empty"),
        pytest.param('"action": "++"', "++", id="a known one and more"),
        pytest.param('"action": "I choose +"', "I choose +", id="a known one somewhere in it"),
        pytest.param('"action": "say \\"+\\""', 'say "+"', id="escaped quotation marks"),
        pytest.param('"action": "\\q"', "\\q", id="an escape that JSON does not know is kept"),
        pytest.param('"action": "a\nb"', "a\nb", id="line break"),
    ],
)
def test_unknown_action(text: str, action: str) -> None:
    """The text that was tried comes back, for whoever reads the replay."""
    parsed = parse_response(said(text), ["+", "-"])
    assert (parsed.action, parsed.is_valid) == (action, False)
    assert parsed.failure is ParseFailure.UNKNOWN_ACTION


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("I choose +", id="no field"),
        pytest.param('"action"', id="key alone"),
        pytest.param('"action": +', id="no string"),
        pytest.param('"action": "+', id="cut within the value"),
        pytest.param('"action": "+\\"', id="the closing mark is escaped"),
        pytest.param("'action': '+'", id="other quotation marks"),
        pytest.param('"Action": "+"', id="capital letter"),
        pytest.param('"reaction": "+"', id="longer key"),
        pytest.param('\\"action\\": \\"+\\"', id="escaped throughout"),
    ],
)
def test_no_action(text: str) -> None:
    parsed = parse_response(said(text), ["+", "-"])
    assert (parsed.action, parsed.is_valid) == ("", False)
    assert parsed.failure is ParseFailure.NO_ACTION


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(',\n"action": "+"', id="the same action again"),
        pytest.param(', "action": 3}', id="another field"),
        pytest.param('}{"action": "+"}', id="another answer"),
        pytest.param("}\n}", id="two braces"),
        pytest.param("} and then", id="words"),
        pytest.param("\n```", id="a fence that was never opened"),
        pytest.param("}]", id="a bracket"),
        pytest.param(",", id="a comma"),
        pytest.param('"', id="a quotation mark"),
        pytest.param("}\nObservation: it is", id="the environment's part"),
    ],
)
def test_an_answer_ends_at_its_action(rest: str) -> None:
    """Otherwise invalid: no environment executes it, and nothing in it is rewarded."""
    text = f'{{"thoughts": "so", "action": "+"{rest}'
    parsed = parse_response(said(text), ["+", "-"])
    assert (parsed.action, parsed.is_valid) == ("", False)
    assert parsed.failure is ParseFailure.TRAILING_TEXT
    assert parsed.thought_span == Span(0, text.index('"action"'))
    assert parse_response(said(text), None).failure is ParseFailure.TRAILING_TEXT
    assert parse_response(said(text), ["+", "-"], form="last_field").is_valid


@pytest.mark.parametrize(
    ("text", "action", "is_valid"),
    [
        pytest.param('"action": "-", "action": "+"', "+", True, id="the last one counts"),
        pytest.param('"action": "+", "action": 3', "+", True, id="one without a string does not"),
        pytest.param('"action": "+" and then "-"', "+", True, id="what follows is not read"),
        pytest.param('"action": "+", "action": "*"', "*", False, id="the last one is unknown"),
    ],
)
def test_last_field(text: str, action: str, is_valid: bool) -> None:
    parsed = parse_response(said(text), ["+", "-"], form="last_field")
    assert (parsed.action, parsed.is_valid) == (action, is_valid)
    assert parsed.thought_span == Span(0, text.rindex('"action": "'))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        pytest.param('"action": "10"', "10", id="a value"),
        pytest.param('"thoughts": "2 + 1", "action": 10 it is', "10", id="anywhere after the key"),
        pytest.param('"action": STAND', "stand", id="in any case"),
        pytest.param('"action": "1", "action": "1",', "1", id="again and again"),
        pytest.param('"action": "1" or "stand"', None, id="two of them"),
        pytest.param('"action": "1" or "10"', None, id="one and the other, of which it is a part"),
        pytest.param('"action": "hit"', None, id="none of them"),
        pytest.param('stand "action": "x"', None, id="before the key"),
        pytest.param("I choose stand", None, id="no key"),
    ],
)
def test_text_search(text: str, action: str | None) -> None:
    """As RL4VLM's code reads an answer; 10 is never 1."""
    parsed = parse_response(said(text), ["1", "10", "stand", ""], form="text_search")
    assert (parsed.action, parsed.is_valid) == (action or "", action is not None)
    if '"action"' in text:
        assert parsed.thought_span.stop == text.index('"action"')
        assert parsed.failure is (None if action else ParseFailure.UNKNOWN_ACTION)
    else:
        assert parsed.failure is ParseFailure.NO_ACTION


def test_text_search_without_a_list_of_actions_takes_the_last_field() -> None:
    parsed = parse_response(said('"action": "a", "action": "b", so'), None, form="text_search")
    assert (parsed.action, parsed.is_valid) == ("b", True)


def test_an_action_is_never_a_prefix_of_another() -> None:
    """RL4VLM's search for a known action in the text finds "go to cabinet 1" here."""
    parsed = parse_response(said('"action": "go to cabinet 12"'), ["go to cabinet 1"])
    assert parsed.failure is ParseFailure.UNKNOWN_ACTION


def plus_in_words(text: str, admissible: Sequence[str]) -> str | None:
    """Of an environment that knows what "plus" means."""
    return {"plus": "+"}.get(text)


@pytest.mark.parametrize(
    ("text", "action", "is_valid"),
    [("plus", "+", True), ("+", "+", True), ("minus", "minus", False), ("", "", False)],
)
def test_the_environment_decides_what_a_text_means(text: str, action: str, is_valid: bool) -> None:
    """That is what is executed and recorded; what means nothing is tried as it was written."""
    completion = said(f'"action": "{text}"')
    parsed = parse_response(completion, ("+", "-"), resolve_action=plus_in_words)
    assert (parsed.action, parsed.is_valid) == (action, is_valid)


def test_half_a_surrogate_pair_is_no_text() -> None:
    r"""A model can write \ud83d; a prompt that repeats it could not be tokenized."""
    parsed = parse_response(said(r'"action": "\ud83d\ude00 \ud83d"'), None)
    assert parsed.action == "\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}"


def test_open_actions() -> None:
    parsed = parse_response(said('"action": "is it a cat?"'), None)
    assert (parsed.action, parsed.is_valid) == ("is it a cat?", True)


# --- the spans ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "split"),
    [
        pytest.param(["so ", '"action"', ": ", '"+"'], 1, id="a token starts at the key"),
        pytest.param(["so", ' "', "action", '": "+"'], 1, id="one token ends with its first mark"),
        pytest.param(['so "action": "+"'], 0, id="one token holds everything"),
        pytest.param(['"action": "+"', ""], 0, id="end-of-sequence belongs to the action"),
        pytest.param(["", "", '"action": "+"'], 2, id="tokens without text stand before the key"),
        pytest.param(['"action": "-", ', '"action": "+"'], 0, id="at the key that counts"),
        pytest.param(["so", "</think>", '"action": "+"'], 2, id="what was thought is thought"),
        pytest.param(["a", '"action"', ": no"], 1, id="a key without a value"),
        pytest.param(["no", " action"], 2, id="no key: all is thought"),
        pytest.param([], 0, id="no tokens"),
    ],
)
def test_spans(pieces: list[str], split: int) -> None:
    parsed = parse_response(said("".join(pieces), pieces), ["+", "-"])
    assert parsed.thought_span == Span(0, split)
    assert parsed.action_span == Span(split, len(pieces))


def test_text_without_tokens() -> None:
    """Scripted agents write text and no tokens."""
    completion = Completion((), (), (), 'so "action": "+"', FinishReason.STOP, 0.0)
    parsed = parse_response(completion, ["+"])
    assert (parsed.action, parsed.thought_span, parsed.action_span) == ("+", (0, 0), (0, 0))


# --- written, and read back -----------------------------------------------------------------------


ADVICE = ExpertAction("+", (("cards", "[7, 5]"), ("thoughts", '"7 first"')))


def test_written_form() -> None:
    assert write_response(ADVICE, "thoughts") == (
        '{\n"cards": [7, 5],\n"thoughts": "7 first",\n"action": "+"\n}'
    )
    assert write_response(ADVICE, "action_only") == '{\n"action": "+"\n}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda parts: st.lists(parts, max_size=3),
    max_leaves=5,
)
advices = st.builds(
    ExpertAction,
    action=st.text().map(str.strip),
    fields=st.lists(
        st.tuples(st.sampled_from(["cards", "formula", "thoughts"]), json_values.map(json.dumps)),
        max_size=3,
    ).map(tuple),
)


@settings(deadline=None)  # a busy machine is not a failure
@given(advices, st.sampled_from(["thoughts", "action_only"]), st.data())
def test_what_is_written_is_read_back(
    expert_action: ExpertAction, form: str, data: st.DataObject
) -> None:
    """However its tokens cut it: the action, and the tokens of everything before its key."""
    text = write_response(expert_action, form)  # pyright: ignore[reportArgumentType]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=12)))
    edges = [0, *cuts, len(text)]
    pieces = [text[start:stop] for start, stop in pairwise(edges)]
    parsed = parse_response(said(text, pieces), [expert_action.action])
    assert (parsed.action, parsed.is_valid) == (expert_action.action, True)
    key = text.rindex('"action": ')
    assert parsed.thought_span == Span(0, sum(stop <= key for stop in edges[1:]))
    assert parsed.action_span == Span(parsed.thought_span.stop, len(pieces))


@settings(deadline=None)  # a busy machine is not a failure
@given(advices)
def test_what_is_written_is_json(expert_action: ExpertAction) -> None:
    written: object = json.loads(write_response(expert_action, "thoughts"))
    expected = {name: json.loads(value) for name, value in expert_action.fields}
    assert written == expected | {"action": expert_action.action}
