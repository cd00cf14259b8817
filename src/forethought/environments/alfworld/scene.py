"""A room with things in it: what a generated game starts from."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np

from forethought.environments.alfworld.package import (
    Goal,
    Point,
    Room,
    TaskType,
    changeable,
    constants,
    goal_library,
    openable_types,
    portable_things,
    static_receptacles,
)

FIXTURES = {"StoveBurner": 4, "HandTowelHolder": 2}
"""How many of a receptacle there are that the room names but its plan does not place."""

FIXED_THINGS = {
    "DeskLamp": ("Desk", "SideTable", "Dresser", "Shelf", "CoffeeTable", "DiningTable"),
    "FloorLamp": ("SideTable", "CoffeeTable", "DiningTable", "Desk", "TVStand", "Dresser"),
    "HousePlant": ("CounterTop", "SideTable", "Shelf", "DiningTable", "CoffeeTable", "Desk"),
    "Television": ("TVStand", "Dresser", "CounterTop", "CoffeeTable"),
}
"""Things that cannot be picked up, with the receptacle types on which they may stand."""

LAMPS = ("DeskLamp", "FloorLamp")

COPIES = (0.55, 0.3, 0.15)
"""How often there are one, two, three of a thing."""

MOST_THINGS = {"surface": 9, "container": 3}
"""How many things a receptacle holds at most; containers are those that open."""

SURFACE_WEIGHT = 3.0
"""How much likelier a thing lies on a surface than in a container."""


@dataclass(frozen=True)
class Receptacle:
    """Where things can lie."""

    id: str
    """"Drawer|+00.95|+00.22|-02.20"."""
    kind: str
    point: Point
    """Receptacles may share the point from which they are reached."""


@dataclass(frozen=True)
class Thing:
    """What lies somewhere."""

    id: str
    kind: str
    inside: str
    """Id of the receptacle in or on which it lies."""


@dataclass(frozen=True)
class Scene:
    """A room, what is in it, and the agent."""

    room: Room
    receptacles: tuple[Receptacle, ...]
    things: tuple[Thing, ...]
    start: Point
    """Where the agent is; no receptacle is reached from there."""


@cache
def receptacles_of(room: Room) -> tuple[Receptacle, ...]:
    """All receptacles of a room: those of the plan, and those that it names without a place
    (coffee machine, stove, toaster, most bins and holders), at points of the plan.

    A stove's burners are reached two by two; each other addition from a point of its own.
    """
    placed = [Receptacle(name, kind_of(name), point) for name, point in room.receptacles]
    known = {receptacle.kind for receptacle in placed}
    missing = sorted((set(room.object_types) & static_receptacles()) - known)
    randomness = np.random.default_rng([room.number, 0])
    floor = [room.floor[index] for index in randomness.permutation(len(room.floor))]
    for kind in missing:
        for copy in range(FIXTURES.get(kind, 1)):
            point = placed[-1].point
            if copy % 2 == 0:
                x, z = floor.pop()
                point = (x, z, int(randomness.integers(4)), 30)
            placed.append(Receptacle(_new_id(kind, point, copy), kind, point))
    return tuple(placed)


def kind_of(name: str) -> str:
    """ "Sink|-01.90|+00.97|-01.50|SinkBasin" is a SinkBasin, "Cabinet|…" a Cabinet."""
    first, *rest = name.split("|")
    return rest[-1] if rest and rest[-1].endswith("Basin") else first


def pairs_in(room: Room, task_type: TaskType) -> tuple[Goal, ...]:
    """Every goal of this kind that the room allows, in a fixed order."""
    places = {receptacle.kind for receptacle in receptacles_of(room)}
    things = {name: where for name, where in portable_things().items() if name in room.object_types}
    things = {name: where & places for name, where in things.items() if where & places}
    if task_type is TaskType.LOOK:
        lamps = [lamp for lamp in LAMPS if lamp in room.object_types and _stands(lamp, places)]
        return tuple(Goal(task_type, name, "", lamp) for name in things for lamp in lamps)
    tool = {TaskType.CLEAN: "SinkBasin", TaskType.HEAT: "Microwave", TaskType.COOL: "Fridge"}
    if tool.get(task_type, "") not in {*places, ""}:
        return ()
    able = changeable(task_type)
    return tuple(
        Goal(task_type, name, place, "")
        for name, where in things.items()
        if able is None or name in able
        for place in sorted(where)
        if place != tool.get(task_type)  # clean, heat or cool it there and it is done
        if len(where) > 1  # it must be able to lie elsewhere at first
    )


def furnish(room: Room, goal: Goal, randomness: np.random.Generator) -> Scene:
    """Draws what lies where. Nothing that the goal asks for is where it should go."""
    receptacles = receptacles_of(room)
    fill: Counter[str] = Counter()
    things: list[Thing] = []
    for kind in _kinds_to_place(room, goal):
        allowed = _places_for(kind, receptacles, goal)
        if not allowed:
            continue
        for _ in range(_copies(kind, goal, randomness)):
            free = [place for place in allowed if fill[place.id] < _room_in(place)]
            if not free:
                break
            weights = np.array([_weight(place) for place in free])
            place = free[int(randomness.choice(len(free), p=weights / weights.sum()))]
            fill[place.id] += 1
            things.append(Thing(_thing_id(kind, place, randomness), kind, place.id))
    points = {receptacle.point for receptacle in receptacles}
    x, z = room.floor[int(randomness.integers(len(room.floor)))]
    start = next(p for p in ((x, z, turn, 30) for turn in (0, 1, 2, 3, 4)) if p not in points)
    return Scene(room, receptacles, tuple(things), start)


def _kinds_to_place(room: Room, goal: Goal) -> list[str]:
    """What the goal names comes first, so that there is room for it."""
    kinds = [k for k in room.object_types if k in portable_things() or k in FIXED_THINGS]
    return sorted(kinds, key=lambda kind: kind not in (goal.thing, goal.lamp))


def _copies(kind: str, goal: Goal, randomness: np.random.Generator) -> int:
    if kind in FIXED_THINGS:
        return 1
    drawn = 1 + int(randomness.choice(len(COPIES), p=COPIES))
    return max(2, drawn) if kind == goal.thing and goal.task_type is TaskType.PICK2 else drawn


def _places_for(kind: str, receptacles: tuple[Receptacle, ...], goal: Goal) -> list[Receptacle]:
    allowed = FIXED_THINGS.get(kind) or portable_things()[kind]
    forbidden = goal.place if kind == goal.thing else None
    return [r for r in receptacles if r.kind in allowed and r.kind != forbidden]


def _stands(lamp: str, places: set[str]) -> bool:
    return bool(set(FIXED_THINGS[lamp]) & places)


def _room_in(place: Receptacle) -> int:
    return MOST_THINGS["container" if place.kind in openable_types() else "surface"]


def _weight(place: Receptacle) -> float:
    return 1.0 if place.kind in openable_types() else SURFACE_WEIGHT


def _thing_id(kind: str, place: Receptacle, randomness: np.random.Generator) -> str:
    """A name of the package's form; the numbers only distinguish things of one kind."""
    x, z, *_ = place.point
    dx, height, dz = randomness.uniform(-0.6, 0.6), randomness.uniform(0.2, 1.6), 0.0
    dz = randomness.uniform(-0.6, 0.6)
    return f"{kind}|{x / 4 + dx:+06.2f}|{height:+06.2f}|{z / 4 + dz:+06.2f}"


def _new_id(kind: str, point: Point, copy: int) -> str:
    x, z, *_ = point
    place = f"{x / 4:+06.2f}|{0.9 + copy / 10:+06.2f}|{z / 4:+06.2f}"
    if kind.endswith("Basin"):  # a part of a sink or a bathtub: "Sink|…|SinkBasin"
        return f"{kind.removesuffix('Basin')}|{place}|{kind}"
    return f"{kind}|{place}"


_SIGNS = {"-": "_minus_", "|": "_bar_", "+": "_plus_", ".": "_dot_", ",": "_comma_"}
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))

ABILITIES = {
    "cleanable": "Cleanable",
    "heatable": "Heatable",
    "coolable": "Coolable",
    "sliceable": "Sliceable",
}
"""Predicate of the rules, table of the package."""


def write_problem(name: str, scene: Scene, goal: Goal) -> str:
    """The whole problem as PDDL; equal arguments give equal text."""
    movable = sorted(constants().OBJECTS_SET - static_receptacles())
    rtypes = sorted(static_receptacles())
    locations = sorted({receptacle.point for receptacle in scene.receptacles} | {scene.start})
    objects = [
        "agent1 - agent",
        *(f"{kind} - object" for kind in movable),
        *(f"{kind}Type - otype" for kind in movable),
        *(f"{kind}Type - rtype" for kind in rtypes),
        *(f"{pddl_name(thing.id)} - object" for thing in scene.things),
        *(f"{pddl_name(receptacle.id)} - receptacle" for receptacle in scene.receptacles),
        *(f"{_location(point)} - location" for point in locations),
    ]
    return (
        f"\n(define (problem {name})\n    (:domain alfred)\n"
        f"    (:objects\n{_lines(objects)}    )\n"
        f"    (:init\n        (= (total-cost) 0)\n{_lines(_facts(scene))}    )\n"
        f"{goal_pddl(goal)}"
    )


def pddl_name(name: str) -> str:
    """ "Cup|-00.23|+00.90|+01.2" with the signs that PDDL cannot take spelled out."""
    return _SIGN.sub(lambda match: _SIGNS[match.group()], name)


def goal_pddl(goal: Goal) -> str:
    """The goal from the package's library; closes the problem."""
    text: str = goal_library().gdict[goal.task_type]["pddl"]
    filled = text.format(obj=goal.thing, recep=goal.place, toggle=goal.lamp)
    return filled.replace("#", "-")


def goal_words(goal: Goal) -> tuple[str, ...]:
    """Each wording of the package's library: "put a hot mug in cabinet"."""
    templates: list[str] = goal_library().gdict[goal.task_type]["templates"]
    names = {"obj": goal.thing, "recep": goal.place, "toggle": goal.lamp, "mrecep": ""}
    lowered = {key: value.lower() for key, value in names.items()}
    return tuple(template.format(**lowered) for template in templates)


def _facts(scene: Scene) -> list[str]:
    points = {receptacle.id: receptacle.point for receptacle in scene.receptacles}
    kinds = {receptacle.id: receptacle.kind for receptacle in scene.receptacles}
    facts = [f"(atLocation agent1 {_location(scene.start)})"]
    for receptacle in scene.receptacles:
        name = pddl_name(receptacle.id)
        facts.append(f"(receptacleType {name} {receptacle.kind}Type)")
        facts.append(f"(receptacleAtLocation {name} {_location(receptacle.point)})")
        if receptacle.kind in openable_types():
            facts.append(f"(openable {name})")
    for kind in sorted(set(kinds.values())):
        allowed = [thing for thing, places in portable_things().items() if kind in places]
        facts += [f"(canContain {kind}Type {thing}Type)" for thing in allowed]
    for thing in scene.things:
        facts += _facts_of(thing, points[thing.inside], kinds[thing.inside])
    return facts


def _facts_of(thing: Thing, point: Point, lies_in: str) -> list[str]:
    name = pddl_name(thing.id)
    facts = [
        f"(objectType {name} {thing.kind}Type)",
        f"(inReceptacle {name} {pddl_name(thing.inside)})",
        f"(objectAtLocation {name} {_location(point)})",
    ]
    if thing.kind not in FIXED_THINGS:
        facts.append(f"(pickupable {name})")
    if thing.kind in LAMPS:
        facts.append(f"(toggleable {name})")
    if thing.kind in constants().MOVABLE_RECEPTACLES_SET:
        facts.append(f"(isReceptacleObject {name})")
    for predicate, table in ABILITIES.items():
        if thing.kind in constants().VAL_ACTION_OBJECTS[table]:
            facts.append(f"({predicate} {name})")
    if lies_in == "Fridge":
        facts.append(f"(isCool {name})")
    return facts


def _location(point: Point) -> str:
    return pddl_name("loc|" + "|".join(map(str, point)))


def _lines(items: list[str]) -> str:
    return "".join(f"        {item}\n" for item in items)
