"""How much of a goal is met, from the facts. Privileged: for rewards, never for a prompt."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from forethought.environments.alfworld.engine import Fact
from forethought.environments.alfworld.package import Goal, TaskType

CONDITIONS = {
    TaskType.PICK: 1,
    TaskType.LOOK: 2,
    TaskType.CLEAN: 3,
    TaskType.HEAT: 3,
    TaskType.COOL: 3,
    TaskType.PICK2: 2,
}
"""How many conditions a goal has. ALFRED's: placed; held and lit; placed, treated, and both
of one thing; one placed, two placed."""

STATES = {"ishot": "hot", "iscool": "cool", "isclean": "clean"}
"""Fact, the state of a thing in words."""

_TREATED = {TaskType.CLEAN: "clean", TaskType.HEAT: "hot", TaskType.COOL: "cool"}

CHANGING = frozenset(
    ("atlocation", "opened", "inreceptacle", "holds", "istoggled", "ison", "issliced", *STATES)
)
"""Facts that commands change, those left out that only say what was looked at."""


@dataclass(frozen=True)
class Situation:
    """The facts that matter, sorted out. Names are those that the agent reads."""

    reachable: tuple[str, ...]
    """Receptacles at the point where the agent is."""
    contents: dict[str, tuple[str, ...]]
    """Receptacle to what lies in it; receptacles that hold nothing are left out."""
    openable: frozenset[str]
    opened: frozenset[str]
    held: str | None
    states: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """States of things that have any: "hot", "cool", "clean"."""
    toggled: frozenset[str] = frozenset()
    """Lamps that were turned on."""
    receptacles: tuple[str, ...] = ()
    """All of them, in alphabetical order."""


def sort_out(facts: Iterable[Fact]) -> Situation:
    """Facts of the engine, as a situation."""
    by_name: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for predicate, arguments in facts:
        by_name[predicate].append(arguments)
    here = {location for _, location in by_name["atlocation"]}
    contents: defaultdict[str, list[str]] = defaultdict(list)
    for thing, place in by_name["inreceptacle"]:
        contents[place].append(thing)
    states: defaultdict[str, set[str]] = defaultdict(set)
    for predicate, state in STATES.items():
        for (thing,) in by_name[predicate]:
            states[thing].add(state)
    return Situation(
        reachable=tuple(sorted(r for r, at in by_name["receptacleatlocation"] if at in here)),
        contents={place: tuple(sorted(things)) for place, things in contents.items()},
        openable=frozenset(name for (name,) in by_name["openable"]),
        opened=frozenset(name for (name,) in by_name["opened"]),
        held=next((thing for _, thing in by_name["holds"]), None),
        states={thing: frozenset(found) for thing, found in states.items()},
        toggled=frozenset(name for (name,) in by_name["istoggled"]),
        receptacles=tuple(sorted(r for r, _ in by_name["receptacleatlocation"])),
    )


def conditions_met(goal: Goal, situation: Situation) -> int:
    """How many of the goal's conditions hold now; all of them exactly when it is won."""
    thing = goal.thing.lower()
    if goal.task_type is TaskType.LOOK:
        at_hand = {item for r in situation.reachable for item in situation.contents.get(r, ())}
        lit = any(_kind(lamp) == goal.lamp.lower() for lamp in situation.toggled & at_hand)
        return int(_kind(situation.held or "") == thing) + int(lit)
    placed = [
        (item, place)
        for place, items in situation.contents.items()
        if _kind(place) == goal.place.lower()
        for item in items
        if _kind(item) == thing
    ]
    if goal.task_type is TaskType.PICK2:
        most = max(Counter(place for _, place in placed).values(), default=0)
        return min(most, 2)
    if goal.task_type is TaskType.PICK:
        return int(bool(placed))
    state = _TREATED[goal.task_type]
    treated = {item for item, found in situation.states.items() if state in found}
    is_treated = any(_kind(item) == thing for item in treated)
    return int(bool(placed)) + int(is_treated) + int(any(item in treated for item, _ in placed))


def _kind(name: str) -> str:
    return name.rpartition(" ")[0]


Reward = Literal["paper", "reference"]

GOAL_REWARD = 50.0
INADMISSIBLE_PENALTY = 1.0


@dataclass
class RewardParts:
    """An episode's reward so far, by part.

    `paper` (RL4VLM, B.2): 50 · 1{goal reached} + 1 for each condition of the goal that is
    met for the first time - 1{inadmissible}. `reference` (its public code): the share of the
    conditions that are met, again at every step, in place of the second term.
    """

    rule: Reward
    conditions: int
    """How many the goal has."""
    most_met: int = 0
    """The most that were met at one time, the start included."""
    goal: float = 0.0
    progress: float = 0.0
    penalty: float = 0.0

    def pay(self, *, met: int, won: bool, admissible: bool) -> float:
        """The reward of one step.

        Args:
            met: conditions that hold after it.
        """
        goal = GOAL_REWARD if won else 0.0
        gained = max(met - self.most_met, 0)
        progress = float(gained) if self.rule == "paper" else met / self.conditions
        penalty = 0.0 if admissible else INADMISSIBLE_PENALTY
        self.most_met += gained
        self.goal += goal
        self.progress += progress
        self.penalty += penalty
        return goal + progress - penalty
