"""Who is compared with whom, and who wins."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from forethought.targets import pairs as pairs_module
from forethought.targets.pairs import Candidate, Compared, Pair, candidates_of, make_pairs
from tests.unit.targets.builders import Did, trajectory


def asked(
    *scored: tuple[Did, float], index: int = 0, task_type: str = "Pick", seed: int = 0
) -> list[Candidate]:
    return [
        Candidate("Environment", seed, task_type, index, trajectory(did).steps[0], score)
        for did, score in scored
    ]


def names(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    return [(p.chosen.step.action.action, p.rejected.step.action.action) for p in pairs]


A, B, C, D = (Did(letter) for letter in "abcd")


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        pytest.param(asked((A, 1.0), (B, 2.0)), [("b", "a")], id="the better one wins"),
        pytest.param(asked((A, 1.0), (B, 1.0)), [], id="a tie makes none"),
        pytest.param(
            asked((A, 3.0), (Did("a", answer="other words"), 1.0)), [], id="the same action"
        ),
        pytest.param(asked((A, 1.0), (Did("b", state="t"), 2.0)), [], id="another state"),
        pytest.param(
            [*asked((A, 1.0)), *asked((B, 2.0), index=1)], [], id="the same state at another step"
        ),
        pytest.param(
            [*asked((A, 1.0)), *asked((B, 2.0), task_type="Look")], [], id="another kind of task"
        ),
        pytest.param(
            asked((A, 1.0), (B, 2.0), (C, 4.0)),
            [("c", "a"), ("c", "b"), ("b", "a")],
            id="all of three, furthest apart first",
        ),
        pytest.param(
            # a: (5 + 1) / 2 = 3, so b with 4 wins
            asked((A, 5.0), (B, 4.0), (A, 1.0)),
            [("b", "a")],
            id="an answer that was given twice has the mean",
        ),
        pytest.param(
            asked((A, 1.0), (Did("b", was_randomized=True), 2.0)),
            [],
            id="an action that was drawn for the answer never wins",
        ),
        pytest.param(
            asked((A, 1.0), (Did("b", was_randomized=True), 0.0)),
            [("a", "b")],
            id="it may lose",
        ),
    ],
)
def test_pairs(candidates: list[Candidate], expected: list[tuple[str, str]]) -> None:
    assert names(make_pairs(candidates, margin=0.0, most_per_group=10)) == expected


def test_the_margin_must_be_exceeded() -> None:
    candidates = asked((A, 1.0), (B, 2.0), (C, 2.5))
    assert names(make_pairs(candidates, margin=1.0, most_per_group=10)) == [("c", "a")]


def test_the_cap_counts_per_state() -> None:
    here, there = (
        asked(*((Did(d.action, state=s), n) for n, d in enumerate((A, B, C)))) for s in "st"
    )
    pairs = make_pairs([*here, *there], margin=0.0, most_per_group=1)
    assert names(pairs) == [("c", "a"), ("c", "a")]
    assert [p.chosen.step.state_key for p in pairs] == ["s", "t"]
    assert len(make_pairs([*here, *there], margin=0.0, most_per_group=2)) == 4


def paired(candidates: list[Candidate], compared: Compared, margin: float = 0.0) -> list[Pair]:
    return make_pairs(candidates, margin=margin, most_per_group=100, compared=compared)


# Two episodes of one game. They part at the first step: from the second one on, their states,
# hence their prompts, differ.
WON = trajectory(Did("a", "0"), Did("b", "1"), Did("a", "3"), seed=7, success=True)
LOST = trajectory(Did("b", "0"), Did("b", "2"), Did("c", "4"), Did("c", "5"), seed=7)
WON_SCORES, LOST_SCORES = np.array([9.0, 8.0, 1.0]), np.array([2.0, 3.0, 1.5, 0.0])


def both() -> list[Candidate]:
    return [*candidates_of(WON, WON_SCORES), *candidates_of(LOST, LOST_SCORES)]


def test_trajectories_of_one_start_pair_at_every_common_step() -> None:
    """Whatever their states are; equal states meet at the first step alone."""
    found = [
        (
            pair.chosen.step_index,
            pair.chosen.step.state_key,
            pair.rejected.step.state_key,
            pair.margin,
        )
        for pair in paired(both(), "start")
    ]
    assert found == [(0, "0", "0", 7.0), (1, "1", "2", 5.0), (2, "4", "3", 0.5)]
    assert [pair.chosen.step_index for pair in paired(both(), "state")] == [0]


def test_the_margin_holds_between_trajectories() -> None:
    assert [p.chosen.step_index for p in paired(both(), "start", margin=0.5)] == [0, 1]


def test_each_response_keeps_its_own_prefix() -> None:
    for pair in paired(both(), "start"):
        for side in pair:
            whole = WON if any(side.step is step for step in WON.steps) else LOST
            assert whole.steps[side.step_index] is side.step
        assert pair.chosen.step is not pair.rejected.step


@pytest.mark.parametrize(
    ("other", "start", "task_type"),
    [
        pytest.param({"seed": 7}, 1, 1, id="the same game"),
        pytest.param({"seed": 8}, 0, 1, id="another game of this task type"),
        pytest.param({"seed": 8, "task_type": "Look"}, 0, 0, id="another task type"),
        pytest.param({"seed": 7, "first_step": 1}, 0, 0, id="another step index"),
    ],
)
def test_who_may_be_compared(other: dict[str, Any], start: int, task_type: int) -> None:
    ours = candidates_of(trajectory(Did("a", "s"), seed=7), np.array([1.0]))
    theirs = candidates_of(trajectory(Did("a", "t"), **other), np.array([2.0]))
    assert len(paired([*ours, *theirs], "start")) == start
    assert len(paired([*ours, *theirs], "task_type")) == task_type


def test_one_action_in_two_states_is_a_pair_and_in_one_state_is_none() -> None:
    here, there = Did("a", "s"), Did("a", "t")
    assert len(paired(asked((here, 1.0), (there, 2.0)), "start")) == 1
    other_words = Did("a", "s", answer="other words")
    assert paired(asked((here, 1.0), (other_words, 2.0)), "start") == []


def test_equal_responses_to_unequal_prompts_are_two_candidates() -> None:
    scored = asked((Did("a", "s"), 1.0), (Did("a", "t"), 3.0), (Did("b", "u"), 2.0))
    assert names(paired(scored, "start")) == [("a", "a"), ("a", "b"), ("b", "a")]


def test_of_trajectories_a_response_counts_as_often_as_it_was_given() -> None:
    """a was right once, b wrong three times: three pairs, where states merge them into one."""
    scored = asked((A, 1.0), (B, 0.0), (B, 0.0), (B, 0.0), (C, 0.0))
    assert names(paired(scored, "start")) == [("a", "b")] * 3 + [("a", "c")]
    assert names(paired(scored, "state")) == [("a", "b"), ("a", "c")]


def test_eight_trajectories_of_eight_games_make_all_their_pairs() -> None:
    """Scores are all different: 28 pairs of each game and step."""
    scored = [
        candidate
        for game in range(8)
        for n in range(8)
        for candidate in candidates_of(
            trajectory(Did("a", f"{n}"), Did("b", f"{n}"), seed=game), np.array([n, -n], float)
        )
    ]
    assert len(paired(scored, "start")) == 8 * 2 * 28
    assert len(paired(scored, "state")) == 0
    capped = make_pairs(scored, margin=0.0, most_per_group=5, compared="start")
    assert len(capped) == 8 * 2 * 5


def test_equal_pairs_are_spread_over_the_answers() -> None:
    candidates = asked((A, 1.0), (B, 1.0), (C, 0.0), (D, 0.0))
    pairs = make_pairs(candidates, margin=0.0, most_per_group=2)
    assert names(pairs) == [("a", "c"), ("b", "d")]


def plainly(candidates: Sequence[Candidate], margin: float, most: int) -> list[Pair]:
    """All pairs of different answers to one question, and from them the best, one by one."""
    left = [
        Pair(chosen, rejected)
        for chosen, rejected in product(candidates, candidates)
        if chosen.score > rejected.score + margin
        and chosen.step.action.action != rejected.step.action.action
        and not chosen.step.action.was_randomized
    ]
    chosen, uses = list[Pair](), Counter[int]()
    while left and len(chosen) < most:
        used = [uses[id(pair.chosen)] + uses[id(pair.rejected)] for pair in left]
        best = min(range(len(left)), key=lambda n: (-left[n].margin, used[n]))
        chosen.append(left.pop(best))
        uses.update([id(chosen[-1].chosen), id(chosen[-1].rejected)])
    return chosen


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param((0.0, 1.0), id="won or lost"),
        pytest.param((0.0, 1.0, 2.0, 3.0, 4.0), id="as far apart in several ways"),
        pytest.param((0.0, 3e-17, 6e-17, 0.5, 1.0 - 1e-16, 1.0), id="rounded to as far apart"),
    ],
)
@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_the_same_as_from_all_pairs(scores: tuple[float, ...], margin: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        did = [
            Did("abcdef"[rng.integers(rng.integers(1, 7))], answer=f"{n}", was_randomized=drawn)
            for n, drawn in enumerate((rng.random(rng.integers(1, 24)) < 0.2).tolist())
        ]
        asked_once = asked(*((one, float(rng.choice(scores))) for one in did))
        most = int(rng.integers(1, 7))
        made = make_pairs(asked_once, margin=margin, most_per_group=most)
        expected = plainly(asked_once, margin, most)
        assert [answers(pair) for pair in made] == [answers(pair) for pair in expected]


def answers(pair: Pair) -> tuple[str, str]:
    return pair.chosen.step.completion.text, pair.rejected.step.completion.text


@pytest.mark.parametrize("scores", [2, 600])
def test_of_many_answers_few_pairs_are_made(scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 600 answers there would be 90,000 pairs and more."""
    made: list[Pair] = []

    def counted(chosen: Candidate, rejected: Candidate) -> Pair:
        made.append(Pair(chosen, rejected))
        return made[-1]

    monkeypatch.setattr(pairs_module, "Pair", counted)
    candidates = asked(*((Did(f"{n}"), float(n % scores)) for n in range(600)))
    assert len(make_pairs(candidates, margin=0.0, most_per_group=4)) == 4
    assert len(made) < 2 * 600


def test_two_trajectories_that_meet() -> None:
    """They share the first two states; at the second they part, and one of them wins."""
    won = trajectory(Did("a", "0"), Did("b", "1"), Did("c", "2"), success=True)
    lost = trajectory(Did("a", "0"), Did("c", "1"), Did("c", "3"), seed=1)
    met = [
        *candidates_of(won, np.array([3.0, 4.0, 5.0])),
        *candidates_of(lost, np.array([0.0, -1.0, 0.0])),
    ]
    (pair,) = make_pairs(met, margin=0.0, most_per_group=4)
    assert (pair.chosen.step.action.action, pair.rejected.step.action.action) == ("b", "c")
    assert (pair.chosen.step_index, pair.margin) == (1, 5.0)


def test_a_trajectory_from_the_middle_counts_its_steps_from_there() -> None:
    late = trajectory(Did("a"), Did("b"), first_step=3)
    assert [candidate.step_index for candidate in candidates_of(late, np.zeros(2))] == [3, 4]


def test_refused() -> None:
    with pytest.raises(ValueError, match="margin: expected 0 or more, got -1"):
        make_pairs([], margin=-1.0, most_per_group=1)
    with pytest.raises(ValueError, match="most_per_group: expected 1 or more, got 0"):
        make_pairs([], margin=0.0, most_per_group=0)
