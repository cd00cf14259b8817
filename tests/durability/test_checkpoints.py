"""A checkpoint is whole or absent; one that was damaged is refused by its name."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from forethought import durable
from forethought.errors import CheckpointError, StorageError
from forethought.runs.checkpoints import (
    KEPT,
    MANIFEST,
    list_checkpoints,
    model_source,
    newest_checkpoint,
    write_checkpoint,
)

WEIGHTS = "model/weights.bin"


def write(folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / WEIGHTS).write_bytes(bytes(range(256)) * 40)
    (folder / "progress.json").write_text("{}")


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Of a run: `step_2` and `step_4`, both sound."""
    folder = tmp_path / "run" / "checkpoints"
    folder.mkdir(parents=True)
    (tmp_path / "run" / "config.yaml").write_text("")
    for step in (2, 4):
        write_checkpoint(folder, step, write)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def flip(path: Path, place: int = 5000) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


# Damage


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda c: flip(c / WEIGHTS), f"{WEIGHTS} was altered or cut short"),
    (lambda c: os.truncate(c / WEIGHTS, 10_239), f"{WEIGHTS} was altered or cut short"),
    (lambda c: os.truncate(c / WEIGHTS, 0), f"{WEIGHTS} was altered or cut short"),
    (lambda c: (c / WEIGHTS).unlink(), f"{WEIGHTS} is missing"),
    (lambda c: shutil.rmtree(c / "model"), f"{WEIGHTS} is missing"),
    (lambda c: (c / MANIFEST).unlink(), f"{MANIFEST} is missing"),
    (lambda c: os.truncate(c / MANIFEST, 40), f"{MANIFEST} is damaged"),
    (lambda c: (c / MANIFEST).write_text("[]"), f"{MANIFEST} is damaged"),
    (lambda c: (c / MANIFEST).write_bytes(b"\xff\xfe"), f"{MANIFEST} is damaged"),
    (
        lambda c: (c / MANIFEST).write_text('{"format": 7, "sha256": {}}'),
        "is of format 7, expected 1",
    ),
]

each_damage = pytest.mark.parametrize(
    ("damage", "told"),
    DAMAGES,
    ids=[
        "one bit flipped",
        "last byte cut off",
        "emptied",
        "file missing",
        "folder missing",
        "manifest missing",
        "manifest cut short",
        "manifest of another shape",
        "manifest that is no text",
        "format of another version",
    ],
)


@each_damage
def test_damage_is_told_by_file_and_with_the_way_on(
    checkpoints: Path, damage: Callable[[Path], object], told: str
) -> None:
    damage(checkpoints / "step_4")
    for name in (checkpoints.parent, checkpoints / "step_4"):
        with pytest.raises(CheckpointError) as error:
            model_source(str(name))
        assert str(error.value) == (
            f"{checkpoints / 'step_4'}: {told} — "
            "the newest good one is step_2: delete step_4 to go on from it"
        )
    shutil.rmtree(checkpoints / "step_4")
    assert newest_checkpoint(checkpoints).name == "step_2"


def test_where_nothing_is_good_that_is_said(checkpoints: Path) -> None:
    for step in (2, 4):
        flip(checkpoints / f"step_{step}" / WEIGHTS)
    with pytest.raises(CheckpointError, match="no other checkpoint is good: start again"):
        newest_checkpoint(checkpoints)


def test_an_older_one_that_is_named_and_damaged(checkpoints: Path) -> None:
    """The newest is good, so nothing need be deleted."""
    flip(checkpoints / "step_2" / WEIGHTS)
    assert newest_checkpoint(checkpoints).name == "step_4"
    with pytest.raises(CheckpointError) as error:
        model_source(str(checkpoints / "step_2"))
    assert str(error.value).endswith("cut short — the newest good one is step_4")


def test_a_file_that_cannot_be_read(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path_open = Path.open

    def broken_disk(path: Path, *args: Any, **kwargs: Any) -> object:
        if path.name == "weights.bin":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return path_open(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", broken_disk)
    with pytest.raises(CheckpointError, match=f"{WEIGHTS} cannot be read: Input/output error"):
        newest_checkpoint(checkpoints)


@pytest.mark.parametrize("name", ["step_6.partial", "step_", "step_x", "step_6 (copy)", "notes"])
def test_what_is_no_checkpoint_is_passed_over(checkpoints: Path, name: str) -> None:
    write((checkpoints / name).mkdir() or checkpoints / name)
    assert newest_checkpoint(checkpoints).name == "step_4"


def test_a_copy_under_another_name_is_a_model_too(checkpoints: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(checkpoints / "step_2", tmp_path / "best")
    assert model_source(str(copy)) == str(copy / "model")
    flip(copy / WEIGHTS)
    with pytest.raises(CheckpointError, match="altered"):
        model_source(str(copy))


def test_another_trainers_folder_of_that_name_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "step_500"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert model_source(str(folder)) == str(folder)


# Writing


def test_only_the_newest_are_kept_and_leftovers_go(checkpoints: Path) -> None:
    (checkpoints / "step_5.partial" / "model").mkdir(parents=True)
    write_checkpoint(checkpoints, 10, write)
    assert names(checkpoints) == ["step_10", "step_4"]
    assert [path.name for path in list_checkpoints(checkpoints)] == ["step_4", "step_10"]
    assert KEPT == 2


@pytest.mark.parametrize(
    "refusal",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.EROFS, os.strerror(errno.EROFS)),
        SafetensorError("Error while serializing: I/O error: No space left on device"),
    ],
    ids=["full", "read-only", "full, as safetensors tells it"],
)
def test_a_disk_that_refuses_costs_nothing_that_was_there(
    checkpoints: Path, refusal: Exception
) -> None:
    def half(folder: Path) -> None:
        write(folder)
        raise refusal

    with pytest.raises(StorageError) as error:
        write_checkpoint(checkpoints, 6, half)
    assert str(error.value).startswith(f"checkpoint {checkpoints / 'step_6'} could not be written")
    assert names(checkpoints) == ["step_2", "step_4"]
    assert newest_checkpoint(checkpoints).name == "step_4"


@pytest.mark.parametrize("call", range(9))
def test_a_disk_that_refuses_to_flush(
    checkpoints: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """At whichever file, or folder: the new one is whole or absent, the old ones are there."""
    fsync, calls = os.fsync, iter(range(100))

    def refuse(descriptor: int) -> None:
        if next(calls) == call:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    if call < 6:  # three files, their folder, the checkpoint's, and the one that names it
        with pytest.raises(StorageError, match="could not be written: Input/output error"):
            write_checkpoint(checkpoints, 6, write)
    else:
        write_checkpoint(checkpoints, 6, write)
    monkeypatch.undo()
    assert newest_checkpoint(checkpoints).name in ("step_4", "step_6")
    assert not list(checkpoints.glob("*.partial"))


def test_everything_is_on_the_disk_before_it_has_its_name(
    checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    flush = durable.flush

    def note(path: Path) -> None:
        flushed.append(path.relative_to(checkpoints.parent).as_posix())
        flush(path)

    monkeypatch.setattr(durable, "flush", note)
    write_checkpoint(checkpoints, 6, write)
    partial = "checkpoints/step_6.partial"
    inside = {f"{partial}/{name}" for name in (MANIFEST, "model", WEIGHTS, "progress.json")}
    assert set(flushed[:-2]) == inside
    assert flushed[-2:] == [partial, "checkpoints"]
