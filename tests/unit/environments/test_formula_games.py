"""EZPoints and Points24: every reward of both rule sets, by hand."""

import pytest

from forethought.environments import make_environment
from forethought.environments.cards.drawing import Card
from forethought.environments.cards.formula_game import FormulaGame, ez_points, points24
from forethought.environments.cards.formula_rules import RuleSet, partners

GO, LOSE, WIN, ILLEGAL = (
    (0.0, False, False),
    (-1.0, True, False),
    (10.0, True, False),
    (-1.0, False, False),
)
CUT, CUT_ILLEGAL = (0.0, False, True), (-1.0, False, True)


def dealt(name: str, rules: RuleSet, *ranks: int, faces_as_ten: bool = True) -> FormulaGame:
    """A game with these cards."""
    game = ez_points(rules) if name == "EZPoints" else points24(rules, faces_as_ten=faces_as_ten)
    game.begin(tuple(Card(rank, 0) for rank in ranks))
    return game


def play(game: FormulaGame, typed: str) -> list[tuple[float, bool, bool]]:
    return [game.step(token) for token in typed.split()]


@pytest.mark.parametrize(
    ("typed", "transitions", "text"),
    [
        pytest.param("7 + 5 =", [GO, GO, GO, WIN], "7+5=", id="12"),
        pytest.param("5 + 7 =", [GO, GO, GO, WIN], "5+7=", id="the other way"),
        pytest.param("7 * 5 =", [GO, GO, GO, LOSE], "7*5=", id="35"),
        pytest.param("=", [LOSE], "=", id="nothing"),
        pytest.param("7 + =", [GO, GO, LOSE], "7+=", id="incomplete"),
        pytest.param("5 7 =", [GO, GO, LOSE], "57=", id="side by side is no sum"),
        pytest.param("8 7", [ILLEGAL, GO], "7", id="a number on no card: nothing changes"),
        pytest.param("7 7 +", [GO, ILLEGAL, GO], "7+", id="a card twice: nothing changes"),
        pytest.param("hit 7", [ILLEGAL, GO], "7", id="no action of this environment"),
        pytest.param("7 + 5 7 =", [GO, GO, GO, ILLEGAL, WIN], "7+5=", id="the fifth step may win"),
        pytest.param("+ + + + +", [GO, GO, GO, GO, CUT], "+++++", id="five steps, truncated"),
        pytest.param("+ + + + 9", [GO] * 4 + [CUT_ILLEGAL], "++++", id="illegal at the limit"),
    ],
)
def test_ez_points_by_the_paper(
    typed: str, transitions: list[tuple[float, bool, bool]], text: str
) -> None:
    game = dealt("EZPoints", "paper", 7, 5)
    assert play(game, typed) == transitions
    assert game.text == text


@pytest.mark.parametrize(
    ("typed", "transitions", "text"),
    [
        pytest.param("7 + 5 =", [GO, GO, GO, WIN], "7+5=", id="12"),
        pytest.param("5 + + 7 =", [GO] * 4 + [WIN], "5++7=", id="signs pile up"),
        pytest.param("8 7 + 5 =", [ILLEGAL, GO, GO, GO, WIN], " 7+5=", id="a blank in front"),
        pytest.param("7 7 + 5 =", [GO, ILLEGAL, GO, GO, WIN], "7 +5=", id="a blank between"),
        pytest.param("hit 7", [ILLEGAL, GO], "7", id="no action of this environment: no blank"),
        pytest.param("+ + + 7 + 5 =", [GO] * 6 + [CUT_ILLEGAL], "+++7+5", id="seventh step"),
        pytest.param("+ + 7 + 5 =", [GO] * 5 + [WIN], "++7+5=", id="the sixth step may win"),
        pytest.param("9 9 9 9 9 9 9", [ILLEGAL] * 6 + [CUT_ILLEGAL], " " * 6, id="all blank"),
    ],
)
def test_ez_points_by_the_reference(
    typed: str, transitions: list[tuple[float, bool, bool]], text: str
) -> None:
    game = dealt("EZPoints", "reference", 7, 5)
    assert play(game, typed) == transitions
    assert game.text == text


@pytest.mark.parametrize(
    ("rules", "ranks", "typed", "wins"),
    [
        pytest.param("paper", (3, 3, 8, 8), "8 / ( 3 - 8 / 3 ) =", True, id="exact fractions"),
        pytest.param("reference", (3, 3, 8, 8), "8 / ( 3 - 8 / 3 ) =", False, id="floats"),
        pytest.param("paper", (1, 2, 4, 6), "4 * 6 =", False, id="two cards are not enough"),
        pytest.param("paper", (1, 2, 4, 6), "6 * 4 * ( 2 - 1 ) =", True, id="all four"),
        pytest.param("paper", (1, 1, 2, 4), "2 4 * 1 * 1 =", False, id="glued: refused"),
        pytest.param("reference", (1, 1, 2, 4), "2 4 * 1 * 1 =", True, id="glued: paid"),
        pytest.param("paper", (2, 3, 8, 8), "8 * * 2 - 3 - 8 =", False, id="power: refused"),
        pytest.param("reference", (2, 5, 1, 2), "5 * * 2 - 1 * * 2 =", True, id="power: paid"),
        pytest.param("reference", (1, 9, 2, 4), "2 4 + 1 / / 9 =", True, id="rounded: paid"),
        pytest.param("paper", (1, 9, 2, 4), "2 4 + 1 / / 9 =", False, id="rounded: refused"),
        pytest.param("paper", (3, 1, 9, 1), "- 3 + 9 * 1 * 1 =", False, id="a sign, not 24"),
        pytest.param("paper", (3, 9, 3, 1), "- 3 + 9 * 3 * 1 =", True, id="a leading minus"),
        pytest.param("paper", (9, 9, 9, 9), "9 * * 9 * * 9 * * 9 =", False, id="hostile"),
        pytest.param("reference", (9, 9, 9, 9), "9 * * 9 * * 9 * * 9 =", False, id="hostile too"),
        pytest.param("paper", (13, 11, 2, 2), "10 + 10 + 2 + 2 =", True, id="faces count 10"),
        pytest.param("paper", (2, 2, 10, 10), "2 / ( 2 - 2 ) =", False, id="division by zero"),
    ],
)
def test_points24_pays(rules: RuleSet, ranks: tuple[int, ...], typed: str, wins: bool) -> None:
    game = dealt("Points24", rules, *ranks)
    assert play(game, typed)[-1] == (WIN if wins else LOSE)


def test_points24_with_faces_of_their_own() -> None:
    game = dealt("Points24", "paper", 13, 11, 1, 1, faces_as_ten=False)
    assert game.rules.actions[9:13] == ("10", "11", "12", "13")
    assert play(game, "10 13 + 11 * 1 * 1 =") == [ILLEGAL, *[GO] * 7, WIN]


@pytest.mark.parametrize(("rules", "steps"), [("paper", 20), ("reference", 22)])
def test_points24_is_truncated(rules: RuleSet, steps: int) -> None:
    game = dealt("Points24", rules, 1, 2, 3, 4)
    transitions = [game.step("(") for _ in range(steps)]
    assert transitions[:-1] == [GO] * (steps - 1)
    assert transitions[-1] == (CUT if rules == "paper" else CUT_ILLEGAL)
    with pytest.raises(RuntimeError, match="over"):
        game.step("(")


def test_legal_actions_are_those_without_a_penalty() -> None:
    game = dealt("EZPoints", "paper", 13, 2)
    assert game.legal_actions() == ("2", "10", "+", "*", "=")
    game.step("10")
    assert game.legal_actions() == ("2", "+", "*", "=")
    game.step("=")
    assert game.legal_actions() == ()


def test_equal_cards_may_each_be_used() -> None:
    game = dealt("EZPoints", "paper", 6, 6)
    assert play(game, "6 + 6 6 =") == [GO, GO, GO, ILLEGAL, WIN]


def test_the_expert_says_what_it_sees() -> None:
    game = dealt("EZPoints", "paper", 7, 5)
    play(game, "7 +")
    assert game.expert() == (
        "5",
        (
            ("cards", "[7, 5]"),
            ("formula", '"7+"'),
            ("thoughts", "\"'7+' is incomplete, since '7+5=12', I append '5'\""),
        ),
    )
    game.step("5")
    assert dict(game.expert().fields)["thoughts"] == (
        "\"'7+5' is complete, since '7+5=12', I append '='\""
    )


@pytest.mark.parametrize(
    ("name", "rules", "ranks", "typed"),
    [
        pytest.param("EZPoints", "paper", (7, 5), "7 *", id="lost by the wrong operator"),
        pytest.param("EZPoints", "paper", (7, 5), "9 9 9", id="too few steps left"),
        pytest.param("EZPoints", "reference", (7, 5), "9 9 9 9", id="the seventh step is void"),
        pytest.param("Points24", "paper", (1, 1, 1, 1), "", id="no solution"),
        pytest.param("Points24", "paper", (1, 2, 3, 4), ")", id="no formula"),
        pytest.param("Points24", "reference", (2, 5, 1, 2), "5 9 *", id="alive"),
        pytest.param("Points24", "reference", (5, 5, 5, 1), "5 * 9 * 9", id="a broken power"),
    ],
)
def test_the_expert_gives_up_at_once_where_nothing_helps(
    name: str, rules: RuleSet, ranks: tuple[int, ...], typed: str
) -> None:
    game = dealt(name, rules, *ranks)
    play(game, typed)
    expert_action = game.expert()
    gives_up = "cannot be reached" in dict(expert_action.fields)["thoughts"]
    assert gives_up == (game.completion() is None)
    assert (expert_action.action == "=") == gives_up
    if typed != "5 9 *":
        assert gives_up


@pytest.mark.parametrize("name", ["EZPoints", "Points24"])
@pytest.mark.parametrize("rules", ["paper", "reference"])
def test_the_expert_wins_whenever_it_says_so(name: str, rules: RuleSet) -> None:
    environment = make_environment(name, rules=rules, image_size=48)
    for seed in range(40):
        environment.reset(seed)
        claims = "since" in dict(environment.expert().fields)["thoughts"]
        while not (transition := environment.step(environment.expert().action)).terminated:
            assert transition == GO
        assert (transition.reward > 0) == claims == environment.success()


def test_ez_points_deals() -> None:
    assert {points: partners(points) for points in (2, 3, 4, 5, 6, 7, 10)} == {
        2: (10, 6), 3: (9, 4), 4: (8, 3), 5: (7,), 6: (6, 2), 7: (5,), 10: (2,)
    }  # fmt: skip
    environment = ez_points(image_size=48)
    pairs = [environment.reset(seed).state_key.split(" |")[0] for seed in range(500)]
    ranks = {card[:-1] for pair in pairs for card in pair.split()}
    assert ranks == {"2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"}


def test_points24_deals_every_rank_equally() -> None:
    environment = points24(image_size=48)
    keys = " ".join(environment.reset(seed).state_key.split(" |")[0] for seed in range(800))
    counts = {
        rank: sum(card[:-1] == rank for card in keys.split()) for rank in ("A", "2", "10", "J", "K")
    }
    assert all(190 < count < 310 for count in counts.values()), counts  # 246 expected
