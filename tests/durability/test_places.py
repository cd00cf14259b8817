"""The places at which slow tests kill and interrupt are there: code moves on."""

from importlib import import_module

import pytest

from tests.durability.test_interrupts import PPO_PHASES, SFT_PHASES
from tests.durability.test_kill import WRITING

PLACES = [place for place, *_ in (*SFT_PHASES, *PPO_PHASES, *WRITING)]


@pytest.mark.parametrize("place", sorted(set(PLACES)))
def test_a_place_is_there(place: str) -> None:
    module, _, path = place.partition(":")
    found: object = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    assert callable(found)
