"""The images of a page, each held once however often it is shown."""

import base64
from io import BytesIO
from typing import NamedTuple

import PIL.Image

from forethought.reports.markup import escape
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
    """Images by number."""

    def __init__(self) -> None:
        self.images: list[EmbeddedImage] = []
        self._number_of: dict[tuple[tuple[int, ...], bytes], int] = {}

    def number(self, image: Image) -> int:
        """Its index in `images`."""
        key = (image.shape, image.tobytes())
        if key not in self._number_of:
            self._number_of[key] = len(self.images)
            self.images.append(embedded(image))
        return self._number_of[key]


def embedded(image: Image) -> EmbeddedImage:
    """Exact, pixel by pixel, unless that takes more than `_LARGE`."""
    drawn = PIL.Image.fromarray(image)
    kind, data = "png", BytesIO()
    drawn.save(data, format="PNG", optimize=True)
    if data.tell() > _LARGE:
        kind, data = "jpeg", BytesIO()
        drawn.save(data, format="JPEG", quality=_JPEG_QUALITY)
    encoded = base64.b64encode(data.getvalue()).decode("ascii")
    return EmbeddedImage(f"data:image/{kind};base64,{encoded}", image.shape[1])


def image_element(image: EmbeddedImage, *, width: int, described: str) -> str:
    """HTML. An image that grows keeps square pixels.

    Args:
        width: on the page, in CSS pixels.
        described: text for those who cannot see it.
    """
    kind = 'class="pixels" ' if image.width < width else ""
    return f'<img {kind}width="{width}" alt="{escape(described)}" src="{image.address}">'
