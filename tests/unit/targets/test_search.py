"""The tree, step by step: where it goes next, and what an action is worth."""

import numpy as np
import pytest
from numpy.typing import NDArray

from forethought.targets.pairs import SearchTree, make_pairs
from forethought.types import Trajectory
from tests.unit.targets.builders import Did, trajectory

GAMMA = 0.5


def played(
    *actions: str, first_step: int, worth: list[float]
) -> tuple[Trajectory, NDArray[np.float64]]:
    """An episode with P_t as given, and its scores."""
    scores_T = np.array(worth)
    for t in reversed(range(len(worth) - 1)):
        scores_T[t] += GAMMA * scores_T[t + 1]
    steps = [Did(action, state=f"{first_step + t}") for t, action in enumerate(actions)]
    return trajectory(*steps, first_step=first_step), scores_T


def tree(*, width: int = 2, exploration: float = 1.0) -> SearchTree:
    """Root after one step "x"; known: "a" then "b", with P = 2 and 4, so S = 4, 4."""
    episode, scores_T = played("x", "a", "b", first_step=0, worth=[0.0, 2.0, 4.0])
    return SearchTree(
        episode,
        scores_T,
        at=1,
        prefix=("x",),
        width=width,
        exploration=exploration,
        gamma=GAMMA,
    )


def values(of: SearchTree) -> dict[tuple[int, str], float]:
    return {(c.step_index, c.step.action.action): c.score for c in of.candidates()}


def selected(of: SearchTree) -> tuple[str, ...]:
    node = of.select()
    assert node is not None
    return node.actions


def test_the_known_episode_is_its_first_play() -> None:
    assert values(tree()) == {(1, "a"): 4.0}


def test_a_state_is_played_from_until_it_has_enough() -> None:
    ours = tree(width=2)
    assert selected(ours) == ("x",)
    ours.add(*played("c", first_step=1, worth=[1.0]))
    assert values(ours) == {(1, "a"): 4.0, (1, "c"): 1.0}
    assert selected(ours) == ("x", "a")  # "c" ended the episode; "a" did not


def test_what_is_found_below_is_backed_up() -> None:
    ours = tree(width=2)
    ours.select()
    ours.add(*played("c", "d", first_step=1, worth=[0.0, 2.0]))
    assert selected(ours) == ("x", "a")  # worth 4 against 1
    # From below "a": worth 20, so "a" once more: P = 2, 2 + 0.5 · 20 = 12; mean (4 + 12) / 2.
    ours.add(*played("e", first_step=2, worth=[20.0]))
    assert values(ours) == {(1, "a"): 8.0, (1, "c"): 1.0, (2, "e"): 20.0}


def test_an_answer_that_comes_again_is_one_branch() -> None:
    ours = tree(width=3)
    ours.select()
    ours.add(*played("a", first_step=1, worth=[0.0]))
    assert values(ours) == {(1, "a"): 2.0}


@pytest.mark.parametrize(
    ("exploration", "chosen"),
    [
        # Scaled: a 1 with two visits, c 0 with one; bonus c √(ln 3 / n): 0.74 and 1.05 times c.
        pytest.param(0.0, "a", id="none: where it was best"),
        pytest.param(5.0, "c", id="much: where it was seldom"),
    ],
)
def test_exploration(exploration: float, chosen: str) -> None:
    ours = tree(width=3, exploration=exploration)
    ours.select()
    ours.add(*played("a", "b", first_step=1, worth=[2.0, 4.0]))
    ours.select()
    ours.add(*played("c", "b", first_step=1, worth=[1.0, 0.0]))
    assert selected(ours) == ("x", chosen)


def test_all_ways_known_to_their_end() -> None:
    episode, scores_T = played("a", first_step=0, worth=[1.0])
    ours = SearchTree(episode, scores_T, at=0, prefix=(), width=2, exploration=1.0, gamma=GAMMA)
    assert selected(ours) == ()
    ours.add(*played("b", first_step=0, worth=[0.0]))
    assert ours.select() is None


def test_a_failed_episode_counts_as_played_and_tells_nothing() -> None:
    ours = tree(width=2)
    ours.select()
    ours.add(Trajectory("Environment", 0, "Pick", 0, (), None, False, ()), np.zeros(0))
    assert values(ours) == {(1, "a"): 4.0}
    assert selected(ours) == ("x", "a")


def test_siblings_make_pairs() -> None:
    ours = tree(width=2)
    ours.select()
    ours.add(*played("c", first_step=1, worth=[1.0]))
    (pair,) = make_pairs(ours.candidates(), margin=0.0, most_per_group=1)
    assert (pair.chosen.step.action.action, pair.rejected.step.action.action) == ("a", "c")
    assert pair.margin == 3.0
