"""A scene and a goal as a PDDL problem, in the form of the official games."""

import re

from forethought.environments.alfworld.package import Point, constants, goal_library
from forethought.environments.alfworld.scene import FIXED_THINGS, LAMPS, Scene, Thing
from forethought.environments.alfworld.tasks import (
    Goal,
    openable_types,
    portable_things,
    static_receptacles,
)

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
