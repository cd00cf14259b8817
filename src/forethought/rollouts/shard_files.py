"""A shard as a file: its seal, its copies, what else may bear its name; and images as PNG in it."""

import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

from forethought.environments.check_values import image_problem, size_problem
from forethought.types import Image

SEAL_SIZE = 32
"""Bytes of SHA-256, put between the last page and the footer. A Parquet footer names its
pages by their offsets, so readers that know nothing of a seal pass over it."""

_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}


def open_shard(path: Path) -> BinaryIO:
    """Opens a file to read; a named pipe would wait for a writer, and a device never end.

    Raises:
        ValueError: it is no file.
        OSError: it cannot be opened.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # Of a folder the system says so.
        raise ValueError(f"it is {_KINDS.get(stat.S_IFMT(mode), 'a device')}")
    return path.open("rb")


def write_seal(file: BinaryIO) -> None:
    """Seals a file that is complete but for that."""
    footer = _footer_start(file)
    seal = _digest(file, (0, footer), (footer, _size(file)))
    file.seek(footer)
    tail = file.read()
    file.seek(footer)
    file.write(seal + tail)


def check_seal(file: BinaryIO) -> None:
    """Refuses a file that is not, byte for byte, what some version of this store wrote."""
    footer = _footer_start(file)
    if footer < SEAL_SIZE:
        raise ValueError("it does not end like one")
    file.seek(footer - SEAL_SIZE)
    expected = file.read(SEAL_SIZE)
    got = _digest(file, (0, footer - SEAL_SIZE), (footer, _size(file)))
    if got != expected:
        raise ValueError("its bytes do not match their seal")


def copies_among(paths: Sequence[Path]) -> dict[Path, Path]:
    """Which files are, byte for byte, one that comes before them. Told by their seals, which is
    quick; files that are no shards are for others to refuse. Shards of nothing are no copies."""
    first_of: dict[bytes, Path] = {}
    copies: dict[Path, Path] = {}
    for path in paths:
        with suppress(OSError, ValueError, pa.ArrowException), open_shard(path) as file:
            footer = _footer_start(file)
            if footer < SEAL_SIZE:
                continue
            file.seek(footer - SEAL_SIZE)
            first = first_of.setdefault(file.read(SEAL_SIZE), path)
            if first is not path and pq.ParquetFile(file).metadata.num_rows:
                copies[path] = first
    return copies


def is_copy(other: Path) -> str:
    """What is wrong with a copy, as the end of a line that names it."""
    return f"is the same file as {other.name}, byte for byte — delete one: it would count twice"


def _footer_start(file: BinaryIO) -> int:
    """Where the footer begins: a Parquet file ends with it, its size in 4 bytes, and `PAR1`.
    Negative where a file that is none would have it."""
    end = _size(file) - 8
    file.seek(max(0, end))
    return end - int.from_bytes(file.read(4), "little")


def _size(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)


def _digest(file: BinaryIO, *ranges: tuple[int, int]) -> bytes:
    """SHA-256 of the bytes in these half-open ranges, one after the other."""
    digest = hashlib.sha256()
    for start, stop in ranges:
        file.seek(start)
        while block := file.read(min(1 << 20, stop - file.tell())):
            digest.update(block)
    return digest.digest()


class ImageEncoder:
    """PNG bytes of images; equal images are encoded once."""

    def __init__(self) -> None:
        self._png_of: dict[tuple[tuple[int, ...], bytes], bytes] = {}

    def __call__(self, image: Image) -> bytes:
        if (problem := image_problem(image)) is not None:
            raise ValueError(problem)
        # A digest, not the pixels: a shard of large images would be held twice.
        key = (image.shape, hashlib.sha256(image.tobytes()).digest())
        if key not in self._png_of:
            file = BytesIO()
            # Level 1: rendered images are flat, so higher levels cost time and save little.
            PIL.Image.fromarray(image).save(file, format="PNG", compress_level=1)
            self._png_of[key] = file.getvalue()
        return self._png_of[key]


class ImageDecoder:
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
        with PIL.Image.open(BytesIO(png), formats=["PNG"]) as image:
            problem = size_problem(image.height, image.width)
            image = np.array(image, dtype=np.uint8) if problem is None else None
    except Exception as error:  # Bytes of anybody's: what the library raises for them is many.
        raise ValueError(f"an image cannot be read: {type(error).__name__}: {error}") from error
    problem = problem or image_problem(image)
    if problem is not None or image is None:
        raise ValueError(problem)
    return image
