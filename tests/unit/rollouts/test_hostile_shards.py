"""Shards that are sealed as they should be, and hold what no step can be."""

import io
import os
import socket
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.steps import stored_steps
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.data.description import describe
from forethought.data.validation import validate
from forethought.errors import StorageError
from forethought.offline.dataset import require_learnable, stored, stored_earned
from forethought.rollouts import rows, store
from forethought.rollouts.shard_files import write_seal
from forethought.rollouts.soundness import MAY_BE_NULL
from forethought.rollouts.store import read_earned, read_shard, read_shards, write_shard
from forethought.rollouts.task import open_task
from forethought.types import Message, Metric, Prompt, Span, Trajectory
from tests.unit.data.builders import make_step, make_trajectory, with_first_step

Read = Callable[[Path], object]
READERS: dict[str, Read] = {
    "read_shards": lambda path: list(read_shards(path)),
    "offline": lambda path: list(stored(path)),
    "sft": lambda path: list(stored_steps(SFTConfig(data=str(path)), path)),
    "data describe": lambda path: describe(path, gamma=1.0),
}

ONE = make_step()
NAN = float("nan")
IMPOSSIBLE: dict[str, tuple[Trajectory, str]] = {
    "nan": (with_first_step(reward=NAN), "step 0: reward is nan"),
    "inf": (with_first_step(reward=-float("inf")), "step 0: reward is -inf"),
    "1e308": (with_first_step(reward=1e308), "step 0: reward is 1e+308"),
    "both ends": (
        make_trajectory(0.0, steps=(replace(ONE, terminated=True, truncated=True),)),
        "step 0: terminated is True and truncated True",
    ),
    "half surrogate": (
        with_first_step(prompt=Prompt((Message("user", "a\ud800"),), (1,))),
        r"step 0: its prompt holds '\ud800' at character 1",
    ),
    "half surrogate in a response": (
        with_first_step(completion=replace(ONE.completion, text="{ g\udfff}")),
        r"step 0: its response holds '\udfff'",
    ),
    "nan measure": (make_trajectory(0.0, metrics=(Metric("m", NAN),)), "measure m is nan"),
    "spans": (
        with_first_step(action=replace(ONE.action, thought_span=Span(0, 2))),
        "do not tile the 3 tokens",
    ),
}


def test_numbers_of_moderate_size_are_rewards(tmp_path: Path) -> None:
    write_shard(tmp_path / "0.parquet", [make_trajectory(-1e9, 0.0, 1e9)])
    assert [one.rewards for one in read_earned(tmp_path)] == [(-1e9, 0.0, 1e9)]
    assert len(list(read_shards(tmp_path))) == 1


@pytest.mark.parametrize("name", IMPOSSIBLE)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_impossible_is_refused_by_all_who_learn_from_it(
    name: str, reader: str, tmp_path: Path
) -> None:
    trajectory, problem = IMPOSSIBLE[name]
    path = tmp_path / "0.parquet"
    write_shard(path, [make_trajectory(0.0), trajectory])
    with pytest.raises(StorageError) as error:
        READERS[reader](tmp_path)
    assert str(error.value).startswith(f"{path}: trajectory 1: ")
    assert problem in str(error.value)
    (fault,) = validate(tmp_path, gamma=1.0).faults
    assert (fault.trajectory, problem in fault.message) == (1, True)


@pytest.mark.parametrize("name", ["nan", "inf", "1e308"])
def test_returns_are_not_counted_from_impossible_rewards(name: str, tmp_path: Path) -> None:
    write_shard(tmp_path / "0.parquet", [make_trajectory(0.0), IMPOSSIBLE[name][0]])
    with pytest.raises(StorageError, match="trajectory 1: step 0: reward is"):
        list(stored_earned(tmp_path))


# Columns


def rewritten(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """The shard's rows, changed, and sealed as the store would have done it."""
    table = pq.read_table(path)
    content = table.to_pylist()
    change(content)
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, rows.SCHEMA) as writer:
        writer.write_table(pa.Table.from_pylist(content, schema=rows.SCHEMA))
        version = {store._VERSION_KEY: rows.SCHEMA_VERSION}
        writer.add_key_value_metadata(version)
    with path.open("w+b") as file:
        file.write(buffer.getvalue())
        write_seal(file)


NULLABLE = [field.name for field in rows.SCHEMA if field.nullable]


@pytest.mark.parametrize("column", NULLABLE)
def test_a_null_is_refused_or_has_a_meaning(column: str, tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    write_shard(path, [make_trajectory(0.0, 1.0)])

    def change(content: list[dict[str, Any]]) -> None:
        content[1][column] = None

    rewritten(path, change)
    if column in MAY_BE_NULL:
        list(read_shards(path))
        return
    with pytest.raises(StorageError) as error:
        list(read_shards(path))
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


# Images


def png(chunks: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + chunks


def chunk(kind: bytes, content: bytes) -> bytes:
    body = kind + content
    return len(content).to_bytes(4) + body + zlib.crc32(body).to_bytes(4)


def bomb(side: int) -> bytes:
    """What begins like very many black pixels."""
    header = side.to_bytes(4) * 2 + bytes([8, 2, 0, 0, 0])
    packed = zlib.compress(bytes(1 + 3 * side))
    return png(chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b""))


def saved(image: PIL.Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


RGB = PIL.Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8))
IMAGES = {
    "20,000 x 20,000": lambda: bomb(20_000),
    "10,000 x 10,000": lambda: bomb(10_000),
    "gray": lambda: saved(RGB.convert("L")),
    "palette": lambda: saved(RGB.convert("P")),
    "four channels": lambda: saved(RGB.convert("RGBA")),
    "16 bits": lambda: saved(PIL.Image.fromarray(np.zeros((4, 4), dtype=np.uint16))),
    "cut short": lambda: saved(RGB)[:-30],
    "no image": lambda: b"pixels",
    "another format": lambda: b"GIF89a\x01\x00\x01\x00\x80\x00\x00",
    "broken chunk": lambda: png(chunk(b"IHDR", b"")),
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_that_is_none_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    write_shard(path, [make_trajectory(0.0), make_trajectory(0.0, 1.0)])

    def change(content: list[dict[str, Any]]) -> None:
        content[2]["messages"][0]["image"] = IMAGES[name]()

    rewritten(path, change)
    for read in (read_shard, *READERS.values()):
        with pytest.raises(StorageError, match=r"trajectory 1, step 1: an image ") as error:
            read(path)
        assert "\n" not in str(error.value)
    (fault,) = validate(path, gamma=1.0).faults
    assert "trajectory 1, step 1: an image" in fault.message


# Files


def test_copies_are_refused_by_all_who_learn_and_listed_by_validate(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.parquet", [make_trajectory(0.0)])
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole)
    os.link(tmp_path / "a.parquet", tmp_path / "c.parquet")
    for read in (*READERS.values(), lambda path: list(read_earned(path))):
        with pytest.raises(StorageError, match=r"b\.parquet: is the same file as a\.parquet, byte"):
            read(tmp_path)
    number_line = EnvironmentConfig("NumberLine")
    task = open_task(number_line, PromptConfig(), default_image_size=64)
    with pytest.raises(StorageError, match="is the same file as"):
        require_learnable(SFTConfig(data=str(tmp_path), environment=number_line), task)
    found = validate(tmp_path, gamma=1.0)
    assert [Path(fault.shard).name for fault in found.faults] == ["b.parquet", "c.parquet"]


def test_shards_of_nothing_are_no_copies(tmp_path: Path) -> None:
    """A process that lost all its episodes of two rounds."""
    for name in ("a", "b"):
        write_shard(tmp_path / f"{name}.parquet", [])
    assert list(read_shards(tmp_path)) == []


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder"])
def test_what_only_bears_the_name_of_a_shard_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    listening = socket.socket(socket.AF_UNIX)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        os.chdir(tmp_path)
        listening.bind("0.parquet")
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    try:
        for read in READERS.values():
            with pytest.raises(StorageError, match=r"0\.parquet: "):
                read(tmp_path)
        with pytest.raises(StorageError, match=r"0\.parquet: "):
            read_shard(path)
        assert len(validate(tmp_path, gamma=1.0).faults) == 1
    finally:
        listening.close()
