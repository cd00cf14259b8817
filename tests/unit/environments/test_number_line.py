"""NumberLine, step by step: every reward of both rule sets by hand."""

import pytest

from forethought.environments.cards.number_line import (
    NumberLine,
    Position,
    best_move,
    ceiling_success_rate,
    dealt,
    moved,
)


@pytest.mark.parametrize(
    ("current", "target", "action", "lands_on", "reward"),
    [
        pytest.param(0, 3, "+", 1, 0.0, id="closer"),
        pytest.param(2, 3, "+", 3, 1.0, id="on the target"),
        pytest.param(2, 3, "-", 1, -1.0, id="away"),
        pytest.param(0, 3, "-", 0, -1.0, id="against the lower wall"),
        pytest.param(5, 3, "+", 5, -1.0, id="against the upper wall"),
        pytest.param(4, 3, "-", 3, 1.0, id="on the target, from above"),
    ],
)
def test_reward(current: int, target: int, action: str, lands_on: int, reward: float) -> None:
    assert moved(Position(current, target), action, 5) == (Position(lands_on, target), reward)


@pytest.mark.parametrize(
    ("start", "action", "then", "reward"),
    [
        pytest.param(2, "-", Position(1, 3), -1.0, id="solved at the start: off, and it moves"),
        pytest.param(4, "-", Position(3, 0), -1.0, id="the target moves around: (4 + 1) mod 5"),
        pytest.param(0, "-", Position(0, 1), +1.0, id="solved at the wall: pushing arrives"),
        pytest.param(5, "+", Position(5, 1), +1.0, id="so at the other wall"),
    ],
)
def test_reference_may_start_solved(start: int, action: str, then: Position, reward: float) -> None:
    assert moved(Position(start, start, target_moves=True), action, 5) == (then, reward)


def episode_with(environment: NumberLine, current: int, target: int) -> int:
    """A seed that deals these numbers."""
    for seed in range(1000):
        if environment.reset(seed).state_key.startswith(f"{current}->{target} "):
            return seed
    raise AssertionError("never dealt")


def test_an_episode_is_truncated_after_twice_the_largest_number() -> None:
    environment = NumberLine(image_size=48, max_position=5)
    episode_with(environment, 0, 5)
    transitions = [environment.step("-") for _ in range(10)]
    assert transitions[:9] == [(-1.0, False, False)] * 9
    assert transitions[9] == (-1.0, False, True)
    assert not environment.success()
    assert environment.metrics() == (("reached", 0.0),)
    with pytest.raises(RuntimeError, match="over"):
        environment.step("-")


def test_one_wrong_step_reaches_but_does_not_succeed() -> None:
    environment = NumberLine(image_size=48)
    episode_with(environment, 1, 2)
    assert [environment.step(a) for a in "-++"] == [
        (-1, False, False),
        (0, False, False),
        (1, True, False),
    ]
    assert environment.metrics() == (("reached", 1.0),)
    assert not environment.success()  # -1 + 0 + 1 is not above 0


def test_an_unknown_action_costs_a_step() -> None:
    environment = NumberLine(image_size=48, max_position=1)
    before = environment.reset(0).state_key
    assert environment.step("plus") == (-1.0, False, False)
    assert environment.observation().state_key == before
    assert environment.step("") == (-1.0, False, True)


def test_paper_never_deals_a_solved_line_and_reference_does() -> None:
    paper, reference = NumberLine(image_size=48), NumberLine("reference", image_size=48)
    solved = {"paper": 0, "reference": 0}
    for seed in range(600):
        for environment in (paper, reference):
            current, _, target = environment.reset(seed).state_key.split()[0].partition("->")
            solved[environment.rules] += current == target
    assert solved["paper"] == 0
    assert 60 < solved["reference"] < 140  # 100 expected


@pytest.mark.parametrize(
    ("rules", "drawn", "position"),
    [
        pytest.param("reference", 4, Position(4, 4, target_moves=True), id="202229a: solved"),
        pytest.param("reference_2d947f4", 2, Position(2, 3), id="2d947f4: the next number"),
        pytest.param("reference_2d947f4", 4, Position(4, 0), id="2d947f4: (4 + 1) mod 5"),
        pytest.param("reference_2d947f4", 5, Position(5, 1), id="2d947f4: (5 + 1) mod 5"),
    ],
)
def test_what_the_revisions_make_of_equal_numbers(
    rules: str, drawn: int, position: Position
) -> None:
    assert dealt(rules, drawn, drawn, 5) == position
    assert dealt(rules, 1, 3, 5) == Position(1, 3)


def test_the_later_reference_deals_what_the_former_draws() -> None:
    """The same draws; only where they are equal does the target move on, and is shown so."""
    former, later = (
        NumberLine(rules, image_size=48) for rules in ("reference", "reference_2d947f4")
    )
    solved = 0
    for seed in range(300):
        current, target = former.reset(seed).state_key.split()[0].split("->")
        if current == target:
            solved += 1
            target = str((int(target) + 1) % 5)
        assert later.reset(seed).state_key == f"{current}->{target} shows {target} moves 0"
    assert solved > 20
    assert ceiling_success_rate("reference_2d947f4", 5) == 1.0


def test_reference_shows_the_old_target_for_one_step() -> None:
    environment = NumberLine("reference", image_size=48)
    episode_with(environment, 2, 2)
    environment.step("-")
    assert environment.observation().state_key == "1->3 shows 2 moves 0"
    environment.step("+")
    assert environment.observation().state_key == "2->3 shows 3 moves 0"


@pytest.mark.parametrize("max_position", [1, 2, 5, 99])
def test_the_expert_is_never_wrong_by_the_paper(max_position: int) -> None:
    environment = NumberLine(image_size=64, max_position=max_position)
    for seed in range(30):
        environment.reset(seed)
        while not (transition := environment.step(environment.expert().action)).terminated:
            assert transition == (0.0, False, False)
        assert environment.success()


def test_the_expert_says_what_it_sees() -> None:
    environment = NumberLine(image_size=48)
    episode_with(environment, 0, 3)
    assert environment.expert() == (
        "+",
        (
            ("current number", '"0"'),
            ("target number", '"3"'),
            ("thoughts", '"0 is smaller than 3, so I choose +"'),
        ),
    )
    assert best_move(Position(5, 5), 5) == "+"
    assert best_move(Position(3, 3), 5) == "-"
