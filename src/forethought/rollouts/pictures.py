"""Pictures as PNG bytes and back, pixel for pixel; equal pictures are handled once."""

import hashlib
from io import BytesIO

import numpy as np
import PIL.Image

from forethought.types import Image
from forethought.value_checks import image_problem, size_problem


class PictureEncoder:
    """PNG bytes of pictures; equal pictures are encoded once."""

    def __init__(self) -> None:
        self._png_of: dict[tuple[tuple[int, ...], bytes], bytes] = {}

    def __call__(self, image: Image) -> bytes:
        if (problem := image_problem(image)) is not None:
            raise ValueError(problem)
        # A digest, not the pixels: a shard of large pictures would be held twice.
        key = (image.shape, hashlib.sha256(image.tobytes()).digest())
        if key not in self._png_of:
            file = BytesIO()
            # Level 1: rendered pictures are flat, so higher levels cost time and save little.
            PIL.Image.fromarray(image).save(file, format="PNG", compress_level=1)
            self._png_of[key] = file.getvalue()
        return self._png_of[key]


class PictureDecoder:
    """Pixels of PNG bytes; equal bytes give one shared array."""

    def __init__(self) -> None:
        self._image_of: dict[bytes, Image] = {}

    def __call__(self, png: bytes) -> Image:
        if png not in self._image_of:
            self._image_of[png] = _decoded(png)
        return self._image_of[png]


def _decoded(png: bytes) -> Image:
    """
    Raises:
        ValueError: these are no pixels that `PictureEncoder` takes, or too many of them: a file
            of some kilobytes can stand for gigabytes.
    """
    try:
        with PIL.Image.open(BytesIO(png), formats=["PNG"]) as picture:
            problem = size_problem(picture.height, picture.width)
            image = np.array(picture, dtype=np.uint8) if problem is None else None
    except Exception as error:  # Bytes of anybody's: what the library raises for them is many.
        raise ValueError(f"an image cannot be read: {type(error).__name__}: {error}") from error
    problem = problem or image_problem(image)
    if problem is not None or image is None:
        raise ValueError(problem)
    return image
