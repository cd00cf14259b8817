"""What the tiny model is shown."""

from typing import Any

import numpy as np
import pytest
import torch

from forethought.environments.registry import make_environment
from forethought.models.encoding import Encoder
from forethought.models.tiny import PAPER, background_of, make_tiny
from forethought.types import Image


def pixels_of(images: list[Image], shown: Image) -> torch.Tensor:
    model, processor, _ = make_tiny(["Where? Here."], images, seed=0)
    return Encoder(model, processor).image_inputs([shown])["pixel_values"]


@pytest.mark.parametrize("game", ["NumberLine", "EZPoints", "Points24", "Blackjack"])
def test_the_ground_of_a_card_game_is_about_zero_and_ink_is_not(game: str) -> None:
    image = make_environment(game, image_size=64).reset(0).image
    assert image is not None
    for images in ([image], []):  # Points24 has two grounds, the table's and the cards'
        pixels = pixels_of(images, image)
        assert pixels.abs().median() < 0.12
        assert pixels.abs().max() > 1.0


def test_the_background_is_the_median_of_each_channel_over_all_images() -> None:
    first = np.zeros((2, 2, 3), dtype=np.uint8)
    first[0, 0], first[0, 1], first[1, 0] = (10, 20, 30), (10, 200, 30), (10, 20, 255)
    second = np.full((1, 3, 3), (10, 20, 31), dtype=np.uint8)
    # Seven pixels: red 0, 10 × 6; green 0, 20 × 5, 200; blue 0, 30 × 2, 31 × 3, 255.
    assert background_of(iter([first, second])) == (10 / 255, 20 / 255, 31 / 255)
    assert background_of([]) == PAPER


@pytest.mark.parametrize(
    ("color", "is_paper"),
    [((250, 247, 238), True), ((255, 255, 217), True), ((255, 255, 216), False)],
)
def test_a_background_about_as_bright_as_paper_is_paper(
    color: tuple[int, int, int], is_paper: bool
) -> None:
    found = background_of([np.full((2, 2, 3), color, dtype=np.uint8)])
    assert (found == PAPER) == is_paper
    assert is_paper or found == tuple(channel / 255 for channel in color)


def test_the_background_becomes_zero() -> None:
    table: Any = np.full((64, 64, 3), (193, 193, 184), dtype=np.uint8)
    table[:8, :8] = (255, 0, 0)
    pixels = pixels_of([table], table)
    assert pixels[..., 8:, 8:].abs().max() < 1e-6
    assert pixels[0, 0, 0, 0] == pytest.approx((255 - 193) / 255 / 0.5, abs=1e-6)
