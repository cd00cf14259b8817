"""20 Questions: what the oracle knows."""

from collections import Counter
from itertools import combinations

import pytest

from forethought.environments.twenty_questions.questions import (
    load_attributes,
    load_things,
    truth_table,
)

NAMES = [thing.name for thing in load_things()]


def test_the_objects() -> None:
    sizes = Counter(thing.category for thing in load_things())
    assert len(NAMES) == len(set(NAMES)) == 158
    assert len(sizes) == 17
    assert sizes["Clothes"] == 11
    assert sizes["Office Supplies"] == 14
    assert sizes["Toys"] == sizes["Garden Supplies"] == 5


def test_every_two_objects_can_be_told_apart() -> None:
    rows = [row.tobytes() for row in truth_table()]
    alike = [(NAMES[i], NAMES[j]) for i, j in combinations(range(158), 2) if rows[i] == rows[j]]
    assert alike == []


def test_no_attribute_is_idle() -> None:
    """Each is true of some objects, and none says what another one says."""
    columns = [column.tobytes() for column in truth_table().T]
    assert truth_table().any(axis=0).all()
    twins = [
        (load_attributes()[i].name, load_attributes()[j].name)
        for i, j in combinations(range(len(load_attributes())), 2)
        if columns[i] == columns[j]
    ]
    assert twins == []


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("animal", "alive"),
        ("plant", "alive"),
        ("alive", "natural"),
        ("fruit", "food"),
        ("vegetable", "food"),
        ("food", "natural"),
        ("pet", "animal"),
        ("farm", "animal"),
        ("meat", "animal"),
        ("feline", "meat"),
        ("ball", "sport"),
        ("pocket", "light"),
        ("pocket", "backpack"),
        ("bigger than a continent", "bigger than a house"),
        ("bigger than a house", "bigger than a person"),
        ("water", "natural"),
        ("salt", "water"),
        ("clothing", "worn"),
        ("jewelry", "worn"),
        ("feet", "worn"),
        ("head", "worn"),
        ("neck", "worn"),
        ("hand", "worn"),
        ("legs", "clothing"),
        ("pockets", "clothing"),
        ("screen", "electric"),
        ("blown", "instrument"),
        ("reed", "blown"),
        ("drawers", "furniture"),
        ("engine", "bigger than a person | garden"),
    ],
)
def test_what_follows_from_what(part: str, whole: str) -> None:
    objects = {attribute.name: attribute.objects for attribute in load_attributes()}
    wholes = frozenset[str]().union(*(objects[name] for name in whole.split(" | ")))
    assert objects[part] - wholes == set()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("natural", "electric"),
        ("animal", "food"),
        ("fruit", "vegetable"),
        ("metal", "wood"),
        ("metal", "plastic"),
        ("metal", "cloth"),
        ("wood", "plastic"),
        ("cloth", "leather"),
        ("pocket", "bigger than a person"),
        ("light", "bigger than a person"),
        ("red", "green"),
        ("red", "yellow"),
        ("round", "long"),
        ("alive", "metal"),
        ("pet", "farm"),
        ("vehicle", "worn"),
    ],
)
def test_what_excludes_what(one: str, other: str) -> None:
    objects = {attribute.name: attribute.objects for attribute in load_attributes()}
    assert objects[one] & objects[other] == set()
