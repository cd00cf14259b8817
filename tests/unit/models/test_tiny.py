"""What the tiny model is shown."""

import pytest
import torch

from forethought.environments.registry import make_environment
from forethought.models.encoding import Encoder
from forethought.models.tiny import make_tiny


@pytest.mark.parametrize("game", ["NumberLine", "EZPoints", "Points24", "Blackjack"])
def test_the_ground_of_an_image_is_about_zero_and_ink_is_not(game: str) -> None:
    model, processor, _ = make_tiny(["Where? Here."], seed=0)
    image = make_environment(game, image_size=64).reset(0).image
    assert image is not None
    pixels: torch.Tensor = Encoder(model, processor).image_inputs([image])["pixel_values"]
    assert pixels.abs().median() < 0.1
    assert pixels.abs().max() > 1.0
