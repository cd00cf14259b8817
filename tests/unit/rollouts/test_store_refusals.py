"""A shard is whole or absent, and what is not a whole shard of this version is refused."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forethought.errors import StorageError
from forethought.rollouts.rows import OLDER
from forethought.rollouts.store import read_shard, read_shards, write_shard
from forethought.types import (
    Completion,
    FinishReason,
    Message,
    ParsedAction,
    Prompt,
    Span,
    Step,
    Trajectory,
)


def trajectories(*, n: int = 3, logprob: float = -0.5, side: int = 4) -> list[Trajectory]:
    """`n` episodes of one step each, with noise that does not compress."""
    generator = np.random.default_rng(0)
    return [
        Trajectory(
            "environment",
            seed,
            "task",
            0,
            (_step(generator, logprob, side),),
            None,
            False,
            metrics=(),
        )
        for seed in range(n)
    ]


def _step(generator: np.random.Generator, logprob: float, side: int) -> Step:
    image = generator.integers(0, 256, (side, side, 3), dtype=np.uint8)
    return Step(
        prompt=Prompt((Message("user", "look", image),), token_ids=(1, 2)),
        completion=Completion((7,), (logprob,), (0,), "go", FinishReason.STOP, 1.0),
        action=ParsedAction("go", True, None, Span(0, 0), Span(0, 1)),
        reward=1.0,
        terminated=True,
        truncated=False,
        value=None,
        policy_version=0,
        state_key="start",
        duration_s=0.0,
    )


def assert_same(path: Path, expected: list[Trajectory]) -> None:
    got = read_shard(path)
    assert [t.seed for t in got] == [t.seed for t in expected]
    for a, b in zip(got, expected, strict=True):
        assert np.array_equal(a.steps[0].prompt.images[0], b.steps[0].prompt.images[0])


def assert_one_line(error: pytest.ExceptionInfo[StorageError], path: Path) -> None:
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message


# Damage


def test_a_shard_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    write_shard(path, trajectories())
    whole = path.read_bytes()
    for size in [0, 1, 4, 8, *range(9, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(StorageError, match=r"got .*expected a whole shard") as error:
            read_shard(path)
        assert_one_line(error, path)


def test_a_flipped_bit_is_refused_wherever_it_is(tmp_path: Path) -> None:
    """In pages, page headers, the seal, the footer, the footer's size and the last magic bytes."""
    path = tmp_path / "0.parquet"
    write_shard(path, trajectories(n=2, side=2))
    whole = path.read_bytes()
    for index in [*range(0, len(whole) - 12, 11), *range(len(whole) - 12, len(whole))]:
        altered = bytearray(whole)
        altered[index] ^= 1 << (index % 8)
        path.write_bytes(altered)
        with pytest.raises(StorageError, match=r"got .*expected a whole shard") as error:
            read_shard(path)
        assert_one_line(error, path)


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"garbage " * 100, b"PAR1" + bytes(99) + b"PAR1"]
)
def test_garbage_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "0.parquet"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="expected a whole shard") as error:
        list(read_shards(tmp_path))
    assert_one_line(error, path)


def test_another_schema_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0.parquet"
    with monkeypatch.context() as patch:
        patch.setattr("forethought.rollouts.store.SCHEMA_VERSION", "7")
        write_shard(path, trajectories())
    with pytest.raises(StorageError, match="got schema version 7, expected 5") as error:
        read_shard(path)
    assert_one_line(error, path)


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_older_versions_are_read_as_without_what_they_lack(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0.parquet"
    with monkeypatch.context() as patch:
        patch.setattr("forethought.rollouts.store.SCHEMA_VERSION", version)
        patch.setattr("forethought.rollouts.store.SCHEMA", OLDER[version])
        patch.setattr("forethought.rollouts.rows.SCHEMA", OLDER[version])
        write_shard(path, trajectories())
    steps = [step for trajectory in read_shard(path) for step in trajectory.steps]
    assert steps
    assert all(step.progress is None for step in steps)
    assert all(step.completion.allowed_ids == () for step in steps)
    assert all((step.thought_facts, step.strict_format) == (None, None) for step in steps)


def test_other_columns_under_our_version_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0.parquet"
    with monkeypatch.context() as patch:
        patch.setattr("forethought.rollouts.store.SCHEMA", pa.schema([("seed", pa.int64())]))
        write_shard(path, [])
    with pytest.raises(StorageError, match="got other columns than schema version 5 has") as error:
        read_shard(path)
    assert_one_line(error, path)


def test_parquet_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(StorageError, match="foreign file"):
        read_shard(path)


def test_a_missing_file_or_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"0\.parquet: cannot be read: No such file"):
        read_shard(tmp_path / "0.parquet")
    with pytest.raises(StorageError, match="nowhere: does not exist"):
        read_shards(tmp_path / "nowhere")


# What a caller may not write


def test_a_logprob_that_float32_would_change_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="float32"):
        write_shard(tmp_path / "0.parquet", trajectories(logprob=-0.1))
    write_shard(tmp_path / "0.parquet", trajectories(logprob=float(np.float32(-0.1))))


@pytest.mark.parametrize(
    "image", [np.zeros((0, 4, 3), "u1"), np.zeros((4, 4)), np.zeros((4, 4, 4))]
)
def test_an_image_of_another_form_is_refused(tmp_path: Path, image: np.ndarray) -> None:
    [trajectory] = trajectories(n=1)
    object.__setattr__(trajectory.steps[0].prompt.messages[0], "image", image)
    with pytest.raises(ValueError, match=r"uint8 \[H, W, 3\]"):
        write_shard(tmp_path / "0.parquet", [trajectory])
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_reader_would_find_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in \.parquet"):
        write_shard(tmp_path / "0.pq", trajectories())


# Disks that refuse


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.open", "pathlib.Path.replace"])
def test_a_disk_that_refuses_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    path = tmp_path / "0.parquet"
    with monkeypatch.context() as patch:
        patch.setattr(call, refuse)
        with pytest.raises(StorageError, match="cannot be written: ") as error:
            write_shard(path, trajectories())
    assert_one_line(error, path)
    assert os.strerror(code) in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written: No such file or directory"):
        write_shard(tmp_path / "nowhere" / "0.parquet", trajectories())


def run(code: str, *arguments: Path) -> subprocess.Popen[str]:
    """Starts Python on `code` with a template shard to write copies of."""
    prelude = """
import os, resource, signal, sys
from itertools import count
from pathlib import Path
from forethought.errors import StorageError
from forethought.rollouts.store import read_shard, write_shard
template, folder = read_shard(Path(sys.argv[1])), Path(sys.argv[2])
"""
    command = [sys.executable, "-c", prelude + code, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "0.parquet"
    write_shard(path, trajectories(n=20, side=16))
    return path


def test_a_file_that_may_not_grow_leaves_nothing(tmp_path: Path, template: Path) -> None:
    """The kernel itself refuses the write in the middle of a row group."""
    code = """
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_shard(folder / "0.parquet", template)
except StorageError as error:
    print(error)
"""
    output, _ = run(code, template, tmp_path).communicate()
    assert output == f"{tmp_path / '0.parquet'}: cannot be written: File too large\n"
    assert list(tmp_path.iterdir()) == []


# Writers that die


def test_a_writer_killed_before_the_rename_leaves_no_shard(tmp_path: Path, template: Path) -> None:
    code = """
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_shard(folder / "0.parquet", template)
"""
    process = run(code, template, tmp_path)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    [temporary] = tmp_path.iterdir()
    assert temporary.suffix == ".tmp"
    assert list(read_shards(tmp_path)) == []
    write_shard(tmp_path / "1.parquet", trajectories())
    assert [path.name for path in tmp_path.iterdir()] == ["1.parquet"]


def test_every_shard_of_a_killed_writer_is_whole(tmp_path: Path, template: Path) -> None:
    expected = read_shard(template)
    generator = np.random.default_rng(0)
    code = "for i in count(): write_shard(folder / f'{os.getpid()}-{i}.parquet', template)"
    for attempt in range(1, 4):
        process = run(code, template, tmp_path)
        wait_until(lambda: len(list(tmp_path.glob(f"{process.pid}-*.parquet"))) >= 5)  # noqa: B023
        time.sleep(generator.uniform(0, 0.02))  # Dies at another point of its loop each time.
        process.kill()
        process.communicate()
        shards = sorted(tmp_path.glob("*.parquet"))
        assert len(shards) >= 5 * attempt
        for shard in shards:
            assert_same(shard, expected)
    write_shard(tmp_path / "last.parquet", expected)
    assert all(path.suffix == ".parquet" for path in tmp_path.iterdir())


def test_the_temporary_file_of_a_living_writer_is_left_alone(tmp_path: Path) -> None:
    living, dead = tmp_path / ".0.parquet.11.tmp", tmp_path / ".1.parquet.12.tmp"
    dead.touch()
    with living.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_shard(tmp_path / "2.parquet", trajectories())
        assert living.exists()
        assert not dead.exists()
    write_shard(tmp_path / "2.parquet", trajectories())
    assert not living.exists()


def wait_until(condition: Callable[[], bool], attempts: int = 6000) -> None:
    for _ in range(attempts):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came to that")
