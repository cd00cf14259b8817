"""The schematic image: what it shows, and what it must not show."""

from dataclasses import replace

import numpy as np
import pytest

from forethought.environments.alfworld.image import CELL, Ring, cell, draw_scene, glyph, layout
from forethought.environments.alfworld.package import constants
from forethought.environments.alfworld.progress import Situation

KITCHEN = Situation(
    reachable=("cabinet 1", "countertop 1"),
    contents={
        "cabinet 1": ("mug 1",),
        "countertop 1": tuple(f"egg {n}" for n in range(1, 10)),
        "fridge 1": ("apple 1",),
    },
    openable=frozenset({"cabinet 1", "fridge 1"}),
    opened=frozenset(),
    held="plate 1",
    states={"plate 1": frozenset({"clean"})},
    receptacles=("cabinet 1", "countertop 1", "fridge 1"),
)


def test_layout() -> None:
    """Hand, closed cabinet, and a counter whose ninth egg goes into the next row."""
    assert layout(KITCHEN) == (
        ("plate 1",),
        ("cabinet 1",),
        ("countertop 1", *(f"egg {n}" for n in range(1, 8))),
        ("", "egg 8", "egg 9"),
    )


def test_an_open_cabinet_shows_its_inside() -> None:
    opened = replace(KITCHEN, opened=frozenset({"cabinet 1"}))
    assert layout(opened)[1] == ("cabinet 1", "mug 1")


def test_closed_and_remote_contents_are_not_drawn() -> None:
    other = {**KITCHEN.contents, "cabinet 1": ("fork 3",), "fridge 1": ()}
    one, two = (
        draw_scene(64, s, labels=False) for s in (KITCHEN, replace(KITCHEN, contents=other))
    )
    assert np.array_equal(one, two)


def test_before_the_first_step_receptacles_are_shown_and_nothing_in_them() -> None:
    start = replace(KITCHEN, reachable=(), held=None)
    assert layout(start) == (("",), ("cabinet 1", "countertop 1", "fridge 1"))
    full = draw_scene(64, start, labels=False)
    assert np.array_equal(full, draw_scene(64, replace(start, contents={}), labels=False))


@pytest.mark.parametrize(
    "change",
    [
        {"held": None},
        {"held": "plate 2"},
        {"held": "cup 1"},
        {"states": {}},
        {"states": {"plate 1": frozenset({"clean", "hot"})}},
        {"states": {"egg 1": frozenset({"cool"}), "plate 1": frozenset({"clean"})}},
        {"opened": frozenset({"cabinet 1"})},
        {"toggled": frozenset({"egg 1"})},
        {"openable": frozenset({"fridge 1"})},
    ],
)
def test_what_matters_can_be_seen(change: dict[str, object]) -> None:
    changed = replace(KITCHEN, **change)  # pyright: ignore[reportArgumentType]
    one, two = (draw_scene(64, s, labels=False) for s in (KITCHEN, changed))
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("size", [48, 64, 300])
def test_sizes(size: int) -> None:
    image = draw_scene(size, KITCHEN, labels=False)
    assert image.shape == (size, size, 3)
    assert image.dtype == np.uint8
    assert not image.flags.writeable


def test_labels_are_an_addition() -> None:
    plain, labeled = (draw_scene(300, KITCHEN, labels=labels) for labels in (False, True))
    assert not np.array_equal(plain, labeled)


def test_every_class_has_an_icon_of_its_own() -> None:
    names = {name.lower() for name in constants().OBJECTS}
    assert len({glyph(name) for name in names}) == len(names)


def test_numbers_can_be_told_apart() -> None:
    tiles = {cell("mug", number, Ring.NONE).tobytes() for number in range(64)}
    assert len(tiles) == 64
    assert cell("mug", 1, Ring.NONE).shape == (CELL, CELL, 3)
