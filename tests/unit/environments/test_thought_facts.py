"""What a thought claims, read from any text, beside what is so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.environments import make_environment
from forethought.environments.cards.thoughts import number_line_facts
from forethought.environments.contract import Environment, WithThoughtFacts
from forethought.environments.responses import read_field
from forethought.prompts.answers import write_answer
from forethought.types import ThoughtFacts

OFFERED = [("NumberLine", {"image_size": 48})]
"""Environments that offer facts, with options."""


def claims(facts: ThoughtFacts) -> list[tuple[str, str | None, bool]]:
    everything = (*facts.perceived, *facts.inferred)
    return [(claim.name, claim.claimed, claim.is_true) for claim in everything]


def opened(name: str, options: dict[str, object]) -> Environment:
    environment = make_environment(name, **options)  # type: ignore[arg-type]
    environment.restart(0)
    return environment


@pytest.mark.parametrize(("name", "options"), OFFERED)
def test_experts_are_right_and_do_what_they_conclude(name: str, options: dict[str, object]) -> None:
    """In 30 episodes, at every step."""
    environment = opened(name, options)
    assert isinstance(environment, WithThoughtFacts)
    for seed in range(30):
        environment.restart(seed)
        ended = False
        while not ended:
            advice = environment.expert()
            response = write_answer(advice, "thoughts")
            facts = environment.thought_facts(response)
            false = [claim for claim in claims(facts) if not claim[2]]
            assert not false, (response, facts)
            assert advice.action in facts.concluded_actions, (response, facts)
            transition = environment.act(advice.action)
            ended = transition.terminated or transition.truncated


@pytest.mark.parametrize(("name", "options"), OFFERED)
def test_any_text_has_facts_and_changes_nothing(name: str, options: dict[str, object]) -> None:
    environment = opened(name, options)
    assert isinstance(environment, WithThoughtFacts)
    before = environment.observation().state_key

    @given(st.text(st.characters(exclude_categories=())))
    def any_text(response: str) -> None:
        environment.thought_facts(response)
        environment.thought_facts('{"thoughts": "' + response)

    any_text()
    assert not any(true for _, _, true in claims(environment.thought_facts("")))
    assert environment.thought_facts("").concluded_actions == ()
    assert environment.observation().state_key == before


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param('"thoughts": "a"', "a", id="a text"),
        pytest.param('"thoughts"\n:\t"a \\"b\\" \\u00e9"', 'a "b" é', id="escapes"),
        pytest.param('"thoughts": "a \\x"', "a \\x", id="escapes that JSON has not"),
        pytest.param('"thoughts": "a\nb"', "a\nb", id="a line end that JSON forbids"),
        pytest.param('"thoughts": [3, "x"]', '[3, "x"]', id="a list"),
        pytest.param('"thoughts": -12', "-12", id="a number"),
        pytest.param('"thoughts": "a", "thoughts": "b"', "b", id="the last one counts"),
        pytest.param('"thoughts": "a", "action": "+", "thoughts": "b"', "a", id="before the act"),
        pytest.param('"thoughts": {"a": 1}', None, id="another kind"),
        pytest.param('"thoughts": "a', None, id="cut short"),
        pytest.param('"thought": "a"', None, id="another name"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_fields(response: str, expected: str | None) -> None:
    assert read_field(response, "thoughts") == expected


# NumberLine


def test_a_number_line_thought() -> None:
    response = (
        '{"current number": "4", "target number": 1, '
        '"thoughts": "4 is larger than 0, so I choose -", "action": "+"}'
    )
    facts = number_line_facts(response, current=4, target=0)
    assert claims(facts) == [
        ("current number", "4", True),
        ("target number", "1", False),
        ("comparison", "4 is larger than 0", True),
    ]
    assert facts.concluded_actions == ("-",)


@pytest.mark.parametrize(
    ("current", "target", "relation"),
    [(1, 3, "smaller than"), (3, 3, "equal to"), (4, 3, "larger than")],
)
def test_comparisons(current: int, target: int, relation: str) -> None:
    for said in ("smaller than", "equal to", "larger than"):
        thoughts = f'"thoughts": "{current} is {said} {target}, I choose +"'
        [comparison] = number_line_facts(thoughts, current=current, target=target).inferred
        assert comparison.is_true == (said == relation)


def test_what_a_number_line_thought_leaves_out_is_not_true() -> None:
    facts = number_line_facts('{"action": "+"}', current=4, target=0)
    assert claims(facts) == [
        ("current number", None, False),
        ("target number", None, False),
        ("comparison", None, False),
    ]
    assert facts.concluded_actions == ()


def test_the_last_choice_of_a_thought_is_its_conclusion() -> None:
    thoughts = '"thoughts": "I choose +, no, I choose -"'
    assert number_line_facts(thoughts, current=1, target=0).concluded_actions == ("-",)
