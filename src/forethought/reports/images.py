"""The pictures of a page, each held once however often it is shown."""

import base64
from io import BytesIO
from typing import NamedTuple

import PIL.Image

from forethought.types import Image

_LARGE = 48 * 1024
"""Bytes. Drawings are far smaller as PNG; a photograph is not, and hundreds of them would
make a page that no one can send."""
_JPEG_QUALITY = 90


class EmbeddedImage(NamedTuple):
    address: str
    """`data:`, for the `src` of an image."""
    width: int
    """Pixels."""


class ImageTable:
    """Pictures by number."""

    def __init__(self) -> None:
        self.pictures: list[EmbeddedImage] = []
        self._number_of: dict[tuple[tuple[int, ...], bytes], int] = {}

    def number(self, image: Image) -> int:
        """Where this picture stands in `pictures`."""
        key = (image.shape, image.tobytes())
        if key not in self._number_of:
            self._number_of[key] = len(self.pictures)
            self.pictures.append(EmbeddedImage(_address(image), image.shape[1]))
        return self._number_of[key]


def _address(image: Image) -> str:
    """Exact, pixel by pixel, unless that takes more than `_LARGE`."""
    picture = PIL.Image.fromarray(image)
    kind, data = "png", BytesIO()
    picture.save(data, format="PNG", optimize=True)
    if data.tell() > _LARGE:
        kind, data = "jpeg", BytesIO()
        picture.save(data, format="JPEG", quality=_JPEG_QUALITY)
    return f"data:image/{kind};base64,{base64.b64encode(data.getvalue()).decode('ascii')}"
