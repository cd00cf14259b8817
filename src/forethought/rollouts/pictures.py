"""Pictures as PNG bytes and back, pixel for pixel; equal pictures are handled once."""

import hashlib
from io import BytesIO

import numpy as np
import PIL.Image

from forethought.types import Image


class PictureEncoder:
    """PNG bytes of pictures; equal pictures are encoded once."""

    def __init__(self) -> None:
        self._png_of: dict[tuple[tuple[int, ...], bytes], bytes] = {}

    def __call__(self, image: Image) -> bytes:
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
            raise ValueError(
                f"an image is uint8 [H, W, 3], not empty: got {image.dtype} {list(image.shape)}"
            )
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
            with PIL.Image.open(BytesIO(png), formats=["PNG"]) as picture:
                self._image_of[png] = np.array(picture, dtype=np.uint8)
        return self._image_of[png]
