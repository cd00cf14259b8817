"""Images tell states apart, at every size, and are shared where nothing changed."""

from itertools import combinations

import numpy as np
import pytest

from forethought.environments import make_environment
from forethought.environments.cards.drawing import (
    RANK,
    RANK_HEIGHT,
    RANK_NAMES,
    RANK_WIDTH,
    TEXT,
    Card,
    card_tile,
    card_width,
)
from forethought.environments.cards.images import blackjack_image, formula_image, number_line_image
from forethought.environments.gymnasium_view import GymnasiumView
from forethought.types import Image

SIZES = [48, 64, 96, 150, 300]
HAND = (Card(5, 0), Card(10, 1), Card(13, 2), Card(1, 3))


def all_different(images: list[Image]) -> bool:
    return len({image.tobytes() for image in images}) == len(images)


def count_different_pixels(a: Image, b: Image) -> int:
    return int((a != b).any(axis=-1).sum())


@pytest.mark.parametrize("size", SIZES)
def test_every_state_of_the_number_line_has_its_image(size: int) -> None:
    images = [number_line_image(size, t, c, 5) for t in range(6) for c in range(6)]
    assert all_different(images)
    assert all(image.shape == (size, size, 3) for image in images)


@pytest.mark.parametrize("size", SIZES)
def test_two_digits_fit(size: int) -> None:
    assert all_different([number_line_image(size, t, 88, 99) for t in range(100)])


def test_images_are_shared_and_cannot_be_written() -> None:
    for name in ("NumberLine", "EZPoints", "Points24", "Blackjack"):
        environment = make_environment(name, image_size=64)
        first, again = environment.reset(3).image, environment.observation().image
        assert first is again
        assert first is not None
        with pytest.raises(ValueError, match="read-only"):
            first[0, 0] = 0
        copy = GymnasiumView(environment, render_mode="rgb_array").render()
        assert copy is not first
        copy[0, 0] = 0


@pytest.mark.parametrize("size", SIZES)
def test_ranks_differ_by_many_pixels_where_cards_are_smallest(size: int) -> None:
    """Four cards side by side; at 64 pixels a card is 14 wide and its rank 10 high."""
    width = card_width(size, 4)
    tiles = {rank: card_tile(Card(rank, 1), width, 2 * width) for rank in range(1, 14)}
    scale = max(1, (width - 2) // 2 // RANK_WIDTH)
    for a, b in combinations(tiles, 2):
        assert count_different_pixels(tiles[a], tiles[b]) >= 8 * scale**2, (a, b)


def test_glyphs_are_as_announced() -> None:
    assert {glyph.shape[0] for glyph in RANK.values()} == {RANK_HEIGHT} == {10}
    assert max(glyph.shape[1] for glyph in RANK.values()) == RANK_WIDTH
    assert set(RANK_NAMES) <= set(RANK)
    assert {glyph.shape[0] for glyph in TEXT.values()} == {9}
    for a, b in combinations([glyph for name, glyph in TEXT.items() if name != " "], 2):
        assert a.shape != b.shape or (a != b).any()


@pytest.mark.parametrize("size", SIZES)
def test_suits_differ_where_there_is_room(size: int) -> None:
    width = card_width(size, 2)
    assert all_different([card_tile(Card(7, suit), width, 2 * width) for suit in range(4)])


@pytest.mark.parametrize("size", SIZES)
def test_a_growing_formula_always_shows(size: int) -> None:
    tokens = (*"(8-1)*5+(-(", "13", *"/((()+*=")
    images = [formula_image(size, HAND, tokens[:n], 3) for n in range(len(tokens) + 1)]
    assert all_different(images)


@pytest.mark.parametrize("size", SIZES)
def test_the_formula_never_covers_the_cards(size: int) -> None:
    empty = formula_image(size, HAND, (), 3)
    full = formula_image(size, HAND, ("+",) * 21, 3)
    changed = (empty != full).any(axis=(1, 2))
    assert changed[: size // 3].sum() == 0
    assert changed.any()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cards", [2, 3, 5, 8, 12, 21])
def test_every_further_card_changes_the_image(size: int, cards: int) -> None:
    dealer = (Card(10, 0), Card(6, 1))
    hand = tuple(Card(1, index % 4) for index in range(cards))
    image = blackjack_image(size, dealer, hand, True)
    assert image.shape == (size, size, 3)
    more = blackjack_image(size, dealer, (*hand, Card(9, 0)), True)
    assert count_different_pixels(image, more) > size // 4


@pytest.mark.parametrize("size", SIZES)
def test_a_face_down_card_hides_its_rank(size: int) -> None:
    hidden = [blackjack_image(size, (Card(10, 0), Card(r, 1)), HAND, True) for r in (2, 9)]
    shown = [blackjack_image(size, (Card(10, 0), Card(r, 1)), HAND, False) for r in (2, 9)]
    assert np.array_equal(hidden[0], hidden[1])
    assert not np.array_equal(shown[0], shown[1])
    assert not np.array_equal(hidden[0], shown[0])
