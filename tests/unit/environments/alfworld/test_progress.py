"""Conditions of each kind of goal, counted by hand; and the rewards that follow."""

import pytest

from forethought.environments.alfworld.package import Goal, TaskType
from forethought.environments.alfworld.progress import (
    Reward,
    RewardParts,
    Situation,
    conditions_met,
)

SHELF, OTHER = "shelf 1", "shelf 2"


def situation(
    contents: dict[str, tuple[str, ...]] | None = None,
    *,
    held: str | None = None,
    hot: tuple[str, ...] = (),
    here: tuple[str, ...] = (),
    lit: tuple[str, ...] = (),
) -> Situation:
    return Situation(
        reachable=here,
        contents=contents or {},
        openable=frozenset(),
        opened=frozenset(),
        held=held,
        states={thing: frozenset({"hot"}) for thing in hot},
        toggled=frozenset(lit),
    )


PICK = Goal(TaskType.PICK, "Mug", "Shelf", "")
HEAT = Goal(TaskType.HEAT, "Mug", "Shelf", "")
PICK2 = Goal(TaskType.PICK2, "Mug", "Shelf", "")
LOOK = Goal(TaskType.LOOK, "Mug", "", "DeskLamp")
LAMP = {"desk 1": ("desklamp 1",)}


@pytest.mark.parametrize(
    ("goal", "now", "met"),
    [
        pytest.param(PICK, situation(held="mug 1"), 0, id="pick: held is not placed"),
        pytest.param(PICK, situation({SHELF: ("mug 1",)}), 1, id="pick: placed"),
        pytest.param(PICK, situation({SHELF: ("cup 1",)}), 0, id="pick: another thing"),
        pytest.param(HEAT, situation({SHELF: ("mug 1",)}), 1, id="heat: placed cold"),
        pytest.param(HEAT, situation(held="mug 1", hot=("mug 1",)), 1, id="heat: hot, in hand"),
        pytest.param(
            HEAT, situation({SHELF: ("mug 1",)}, hot=("mug 2",)), 2, id="heat: not the same one"
        ),
        pytest.param(HEAT, situation({SHELF: ("mug 1",)}, hot=("mug 1",)), 3, id="heat: done"),
        pytest.param(PICK2, situation({SHELF: ("mug 1",)}), 1, id="two: one"),
        pytest.param(
            PICK2, situation({SHELF: ("mug 1",), OTHER: ("mug 2",)}), 1, id="two: apart is one"
        ),
        pytest.param(PICK2, situation({SHELF: ("mug 1", "mug 2")}), 2, id="two: together"),
        pytest.param(
            PICK2, situation({SHELF: ("mug 1", "mug 2", "mug 3")}), 2, id="two: three are two"
        ),
        pytest.param(LOOK, situation(held="mug 1"), 1, id="look: held"),
        pytest.param(
            LOOK, situation(LAMP, here=("desk 1",), lit=("desklamp 1",)), 1, id="look: lit"
        ),
        pytest.param(
            LOOK, situation(LAMP, held="mug 1", lit=("desklamp 1",)), 1, id="look: lit elsewhere"
        ),
        pytest.param(
            LOOK,
            situation(LAMP, held="mug 1", here=("desk 1",), lit=("desklamp 1",)),
            2,
            id="look: done",
        ),
    ],
)
def test_conditions(goal: Goal, now: Situation, met: int) -> None:
    assert conditions_met(goal, now) == met


@pytest.mark.parametrize(
    ("rule", "paid"),
    [
        pytest.param("paper", [1, 0, 0, -1, 51 + 1], id="paper: each condition once"),
        pytest.param(
            "reference", [1 / 3, 0, 1 / 3, 1 / 3 - 1, 51], id="reference: the share, every step"
        ),
    ],
)
def test_rewards(rule: Reward, paid: list[float]) -> None:
    """One of three conditions met, lost, met again, an inadmissible command, then all three."""
    purse = RewardParts(rule, conditions=3)
    met = [(1, True), (0, True), (1, True), (1, False), (3, True)]
    got = [purse.pay(met=m, won=m == 3, admissible=ok) for m, ok in met]
    assert got == pytest.approx(paid)
    assert purse.goal + purse.progress - purse.penalty == pytest.approx(sum(paid))
    assert purse.penalty == 1


def test_what_is_met_at_the_start_is_not_paid() -> None:
    purse = RewardParts("paper", conditions=2, most_met=1)
    assert purse.pay(met=1, won=False, admissible=True) == 0
    assert purse.pay(met=2, won=True, admissible=True) == 51
