"""What a Gymnasium environment renders, as square images of one size."""

from typing import Any

import numpy as np
from PIL import Image as Pillow

from forethought.environments.gym.calling import brief, calling
from forethought.environments.gym.knowledge import GymEnv
from forethought.errors import ConfigError
from forethought.types import Image


class Renderer:
    """Images of one environment. The first decides which size the others must have."""

    def __init__(self, id: str, environment: GymEnv, size: int) -> None:
        """
        Args:
            id: for messages.
            size: pixels on a side of the square to which images are resized.
        """
        self._id = id
        self._environment = environment
        self._size = size
        self._shape: tuple[int, ...] | None = None

    def image(self) -> Image:
        """The present image, uint8 [size, size, 3], read-only.

        Raises:
            ForethoughtError: it is no image, or not of the size that it had before; or `render`
                raised an exception.
        """
        pixels = self._rendered()
        if pixels.shape[:2] != (self._size, self._size):
            small = Pillow.fromarray(pixels).resize((self._size, self._size), Pillow.Resampling.BOX)
            pixels = np.array(small)
        else:
            pixels = pixels.copy()
        pixels.flags.writeable = False
        return pixels

    def _rendered(self) -> Image:
        size = "[height, width, 3]" if self._shape is None else str(list(self._shape))
        expected = f"expected uint8 {size}, not empty; or take view=text"
        with calling(self._id, "render()", expected):
            pixels: Any = self._environment.render()
        is_image = isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8 and pixels.ndim == 3
        is_image = is_image and pixels.shape[2] == 3 and pixels.size > 0
        if not is_image or pixels.shape != (self._shape or pixels.shape):
            is_array = isinstance(pixels, np.ndarray)
            got = f"{pixels.dtype} {list(pixels.shape)}" if is_array else brief(pixels)
            raise ConfigError(f"{self._id}: render() gave {got} — {expected}")
        self._shape = pixels.shape
        return pixels
