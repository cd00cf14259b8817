"""What a thought claims, read from any text, beside what is so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.environments import make_environment
from forethought.environments.bandit import Bandit
from forethought.environments.cards.blackjack import blackjack_facts
from forethought.environments.cards.drawing import Card
from forethought.environments.cards.formula_game import FormulaGame, ez_points, points24
from forethought.environments.cards.number_line import number_line_facts
from forethought.environments.contract import Environment, WithThoughtFacts
from forethought.environments.parts import read_field
from forethought.prompts.responses import write_response
from forethought.types import Claim, ThoughtFacts

OFFERED: list[tuple[str, dict[str, object]]] = [
    ("NumberLine", {"image_size": 48}),
    ("NumberLine", {"image_size": 48, "expert": "random_choice"}),
    ("EZPoints", {"image_size": 48}),
    ("EZPoints", {"image_size": 48, "expert": "random_choice"}),
    ("EZPoints", {"image_size": 48, "rules": "reference"}),
    ("Points24", {"image_size": 48}),
    ("Points24", {"image_size": 48, "expert": "search"}),
    ("Blackjack", {"image_size": 48}),
    ("Blackjack", {"image_size": 48, "expert": "random_choice"}),
    ("Bandit", {"arms": 26}),
    ("Bandit", {"expert": "random_choice"}),
]
"""Environments that offer facts, with options."""


def claims(facts: ThoughtFacts) -> list[tuple[str, str | None, bool]]:
    everything = (*facts.perceived, *facts.inferred)
    return [(claim.name, claim.claimed, claim.is_true) for claim in everything]


def opened(name: str, options: dict[str, object]) -> Environment:
    environment = make_environment(name, **options)  # type: ignore[arg-type]
    environment.reset(0)
    return environment


@pytest.mark.parametrize(("name", "options"), OFFERED)
def test_experts_are_right_and_do_what_they_conclude(name: str, options: dict[str, object]) -> None:
    """In 30 episodes, at every step."""
    environment = opened(name, options)
    assert isinstance(environment, WithThoughtFacts)
    for seed in range(30):
        environment.reset(seed)
        ended = False
        while not ended:
            expert_action = environment.expert()
            response = write_response(expert_action, "thoughts")
            facts = environment.thought_facts(response)
            false = [claim for claim in claims(facts) if not claim[2]]
            assert not false, (response, facts)
            assert expert_action.action in facts.concluded_actions, (response, facts)
            transition = environment.step(expert_action.action)
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
        pytest.param('"action": "+"</think>"thoughts": "b"', "b", id="behind a thinking block"),
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


# EZPoints and Points24


def played(game: FormulaGame, cards: tuple[int, ...], typed: str) -> FormulaGame:
    game.begin(tuple(Card(points, 0) for points in cards))
    for token in typed:
        game.step(token)
    return game


def formula_response(cards: str, formula: str, thoughts: str) -> str:
    return f'{{"cards": {cards}, "formula": "{formula}", "thoughts": "{thoughts}", "action": "5"}}'


@pytest.mark.parametrize(
    ("thoughts", "ending"),
    [
        pytest.param("'7+' is incomplete, since '7+5=12', I append '5'", True, id="right"),
        pytest.param("'7+' is incomplete, since '7+1+4=12', I append '5'", False, id="other cards"),
        pytest.param("'7+' is incomplete, since '5+7=12', I append '5'", False, id="begun before"),
        pytest.param("'7+' is incomplete, since '7*5=12', I append '5'", False, id="begun else"),
        pytest.param("'7+' is incomplete, since '7+5+=12', I append '5'", False, id="no formula"),
        pytest.param("'7+' is incomplete, since '7+x=12', I append '5'", False, id="no numbers"),
        pytest.param("12 cannot be reached from '7+', so I append '5'", False, id="it can"),
    ],
)
def test_how_a_formula_can_end(thoughts: str, ending: bool) -> None:
    game = played(ez_points(), (7, 5), "7+")
    facts = game.thought_facts(formula_response("[7,5]", "7+", thoughts))
    assert [claim.is_true for claim in facts.perceived] == [True, True]
    assert facts.inferred[-1].is_true is ending
    assert facts.concluded_actions == ("5",)


def test_what_is_misread_is_named_beside_what_is_there() -> None:
    game = played(ez_points(), (7, 5), "7")
    facts = game.thought_facts(formula_response("[7, 6]", "7+", ""))
    assert facts.perceived == (Claim("cards", "[7, 6]", "[7, 5]"), Claim("formula", "7+", "7"))
    assert not facts.inferred[0].is_true


def test_whether_a_formula_is_complete() -> None:
    for typed, true in (("7+", "incomplete"), ("7+5", "complete")):
        game = played(ez_points(), (7, 5), typed)
        for claimed in ("complete", "incomplete"):
            said = f"'{typed}' is {claimed}, since '7+5=12', I append '='"
            [condition, _] = game.thought_facts(formula_response("[]", "", said)).inferred
            assert condition.is_true == (claimed == true)


def test_where_the_target_cannot_be_reached() -> None:
    game = played(ez_points(), (7, 5), "7*")
    said = "12 cannot be reached from '7*', so I append '='"
    assert game.thought_facts(formula_response("[]", "", said)).inferred[-1].is_true
    claims_more = "'7*' is incomplete, since '7*5=12', I append '5'"
    ending = game.thought_facts(formula_response("[]", "", claims_more)).inferred[-1]
    assert ending == Claim("ending", "7*5=12", "7*5=35")


def test_each_operation_is_worked_out_again() -> None:
    game = played(points24(), (2, 9, 3, 5), "")
    said = "2*9+3+5: 2*9=18, 18+3=21, 21+5=27; 2+9*3-5: 9*3=27, 2+27=29, 29-5=24; so, I append '2'"
    facts = game.thought_facts(formula_response("[2, 9, 3, 5]", "", said))
    false = [claim for claim in facts.inferred if not claim.is_true]
    assert len(facts.inferred) == 7
    assert false == [Claim("operation", "21+5=27", "21+5=26")]
    parts = "1-3/4: 3/4=3/4, 1-3/4=1/4, 1/4*(-8)=-2, 1/0=4; nothing, I append '='"
    facts = game.thought_facts(formula_response("[]", "", parts))
    assert [claim.is_true for claim in facts.inferred] == [False, True, True, True, False]


# Blackjack


def test_a_blackjack_thought() -> None:
    thoughts = "I have A, 5: soft 17 points and the dealer shows 9, I choose hit"
    facts = blackjack_facts(
        f'"thoughts": "{thoughts}", "action": "stand"',
        cards="A, 5",
        points="soft 16",
        dealer="10",
        actions=("stand", "hit"),
    )
    assert claims(facts) == [
        ("cards", "A, 5", True),
        ("dealer's card", "9", False),
        ("points", "soft 17", False),
    ]
    assert facts.concluded_actions == ("hit",)


# Bandit


def test_a_bandit_thought() -> None:
    bandit = Bandit()
    bandit.reset(0)
    right = bandit.expert().action
    wrong = "a" if right != "a" else "b"
    for read in (right, wrong):
        said = f'{{"thoughts": "the right answer is {read}, so I choose c", "action": "d"}}'
        facts = bandit.thought_facts(said)
        assert claims(facts) == [("right answer", read, read == right)]
        assert facts.concluded_actions == ("c",)
