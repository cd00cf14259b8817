"""The pictures of a page, each held once however often it is shown."""

import base64
from io import BytesIO

import PIL.Image

from forethought.types import Image


class PictureTable:
    """Pictures as base64 of PNG, by number."""

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self._number_of: dict[tuple[tuple[int, ...], bytes], int] = {}

    def number(self, image: Image) -> int:
        """Where this picture stands in `encoded`."""
        key = (image.shape, image.tobytes())
        if key not in self._number_of:
            file = BytesIO()
            PIL.Image.fromarray(image).save(file, format="PNG", optimize=True)
            self._number_of[key] = len(self.encoded)
            self.encoded.append(base64.b64encode(file.getvalue()).decode("ascii"))
        return self._number_of[key]


def data_uri(encoded: str) -> str:
    """For the `src` of an image."""
    return f"data:image/png;base64,{encoded}"
