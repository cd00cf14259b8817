"""Any value in any place of the original's files: played to the end, or refused in one line."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from forethought.environments.webshop.files import GoalSource
from forethought.environments.webshop.markup import as_page
from forethought.environments.webshop.webshop import WebShop
from forethought.errors import ForethoughtError
from tests.unit.environments.webshop.official import ATTRIBUTES, ITEM, six_goals, write
from tests.unit.environments.webshop.shops import made, play

VALUES: tuple[object, ...] = (
    *(None, True, 5, 1e400, "", "\ud800\x00\n[]", "features"),
    *([], [None], [""], {}, {"": None}, [{"value": "x"}]),
)


def altered(content: object) -> Iterator[object]:
    """The content with each of its parts in turn left out, or another value."""
    yield from VALUES
    if isinstance(content, dict):
        fields = cast(dict[str, object], content)
        for name, part in fields.items():
            yield {other: value for other, value in fields.items() if other != name}
            yield from ({**fields, name: changed} for changed in altered(part))
    elif isinstance(content, list):
        entries = cast(list[object], content)
        for number, part in enumerate(entries):
            for changed in altered(part):
                yield [*entries[:number], changed, *entries[number + 1 :]]


SIZES = [{"value": str(size)} for size in range(5)]  # so that there are synthetic goals enough
SHIRT = {**ITEM, "customization_options": {"Size": SIZES, "Color": [{"value": "Red"}]}}
ABOUT = ATTRIBUTES["B0AAAAAAAA"]
FIRST: dict[str, object] = {
    "items_shuffle_1000": SHIRT,
    "items_ins_v2_1000": ABOUT,
    "items_human_ins": six_goals()[:1],
}
"""What each file says of the first of two products."""


@pytest.mark.parametrize(
    ("goals", "name"),
    [
        ("human", "items_shuffle_1000"),
        ("human", "items_ins_v2_1000"),
        ("human", "items_human_ins"),
        ("synthetic", "items_shuffle_1000"),
        ("synthetic", "items_ins_v2_1000"),
    ],
)
def test_any_value_in_any_place(tmp_path: Path, goals: GoalSource, name: str) -> None:
    played = refused = 0
    for number, changed in enumerate(altered(FIRST[name])):
        environment = opened(tmp_path / str(number), goals, {**FIRST, name: changed})
        if environment is None:
            refused += 1
        else:
            played += 1
            walk(environment, number)
    assert played >= 10
    assert refused >= 10


def opened(folder: Path, goals: GoalSource, first: dict[str, object]) -> WebShop | None:
    """WebShop over files with this first product; None: they are refused, in one line."""
    folder.mkdir()
    about, asked = first["items_ins_v2_1000"], first["items_human_ins"]
    files: dict[str, object] = {
        "items_shuffle_1000": [first["items_shuffle_1000"], {**SHIRT, "asin": "B0BBBBBBBB"}],
        "items_ins_v2_1000": {"B0AAAAAAAA": about, "B0BBBBBBBB": ABOUT},
        "items_human_ins": {"B0AAAAAAAA": asked, "B0BBBBBBBB": six_goals()},
    }
    said = ""
    try:
        return made(data=write(folder, **files), goals=goals, limit_steps=8)
    except ForethoughtError as error:
        said = str(error)
    assert said.count("\n") == 0, said
    return None


def walk(environment: WebShop, seed: int) -> None:
    """The expert, the weak shopper, and one who clicks anything; every page as HTML, too."""
    play(environment, seed)
    play(environment, seed, skill=0.5)
    random = np.random.default_rng(seed)
    environment.reset(seed)
    while actions := environment.legal_actions():
        environment.step(actions[random.integers(len(actions))])
        environment.observation()
        place, goal, pieces = environment.place, environment.goal, environment.pieces
        assert as_page(environment.shop, place, goal, pieces, environment.purchase)
