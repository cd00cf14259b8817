"""A response has exactly the form that was asked for, or it has not; and experts keep it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.configs.parts import ResponseFormat
from forethought.environments import make_environment
from forethought.prompts.history import HistoryPrompter
from forethought.prompts.prompters import ReturnBinPrompter, make_prompter
from forethought.prompts.react import ReActPrompter
from forethought.prompts.responses import response_fields, strict_format, write_response
from forethought.types import Message, Observation

FIELDS = ("thoughts", "action")
NUMBER_LINE = ("current number", "target number", "thoughts", "action")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param('{"thoughts": "hm", "action": "+"}', True, id="as asked for"),
        pytest.param('\n{\n"thoughts": "hm",\n"action": "+"\n}\n', True, id="with blanks"),
        pytest.param('{"thoughts": ["hm"], "action": "+"}', True, id="thoughts of any kind"),
        pytest.param('{"action": "+", "thoughts": "hm"}', False, id="another order"),
        pytest.param('{"action": "+"}', False, id="a field is missing"),
        pytest.param('{"thoughts": "", "more": 1, "action": "+"}', False, id="a field too many"),
        pytest.param('{"thoughts": "", "action": "-", "action": "+"}', False, id="twice"),
        pytest.param('{"thoughts": "", "action": "+"} so', False, id="text after it"),
        pytest.param('so {"thoughts": "", "action": "+"}', False, id="text before it"),
        pytest.param('{"thoughts": "", "action": "+"', False, id="cut short"),
        pytest.param('{"thoughts": "", "action": 1}', False, id="an action that is no text"),
        pytest.param('{"thoughts": NaN, "action": "+"}', False, id="not JSON"),
        pytest.param('[["thoughts", ""], ["action", "+"]]', False, id="a list"),
        pytest.param('"thoughts"', False, id="a text"),
        pytest.param("", False, id="empty"),
        pytest.param("[" * 100_000, False, id="deep"),
    ],
)
def test_form(response: str, expected: bool) -> None:
    assert strict_format(response, FIELDS) is expected


def test_the_action_alone() -> None:
    assert strict_format('{"action": "+"}', ("action",)) is True
    assert strict_format('{"thoughts": "hm", "action": "+"}', ("action",)) is False


class SilentPrompter:
    """Shows the observation and asks for nothing."""

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        return (Message("user", observation.text or ""),)


def test_where_no_json_is_asked_for_there_is_no_answer() -> None:
    assert response_fields(SilentPrompter()) == ()
    assert strict_format('{"action": "+"}', ()) is None
    reasoning = ReActPrompter(make_prompter(make_environment("Bandit", arms=2)))
    assert response_fields(HistoryPrompter(reasoning)) == ()


def test_prompters_around_others_ask_for_what_those_ask_for() -> None:
    inner = make_prompter(make_environment("NumberLine"))
    assert response_fields(HistoryPrompter(ReturnBinPrompter(inner, 1, 2))) == NUMBER_LINE


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_an_answer(response: str) -> None:
    assert isinstance(strict_format(response, FIELDS), bool)


@pytest.mark.parametrize("response_format", ["thoughts", "action_only"])
@pytest.mark.parametrize("wording", ["short", "paper"])
@pytest.mark.parametrize(
    "name", ["NumberLine", "EZPoints", "Points24", "Blackjack", "Bandit", "Wordle"]
)
def test_experts_keep_the_form_that_the_prompt_asks_for(
    name: str, wording: str, response_format: ResponseFormat
) -> None:
    environment = make_environment(name)
    environment.reset(0)
    prompter = make_prompter(
        environment,
        response_format=response_format,
        wording=wording,  # type: ignore[arg-type]
    )
    response = write_response(environment.expert(), response_format)
    assert strict_format(response, response_fields(prompter)) is True
    assert strict_format(response + "}", response_fields(prompter)) is False
