"""The log of a killed and resumed run equals the log of one that never stopped."""

import errno
import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forethought.errors import RunFolderError, StorageError, UnknownNameError
from forethought.runs.metrics import MetricsLog, MetricsPosition, read_metrics
from forethought.runs.run_folder import RunFolder
from forethought.types import Metric


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run")


def test_a_line_is_json_in_the_order_given(folder: RunFolder) -> None:
    with MetricsLog.create(folder) as log:
        log.log(3, [Metric("reward", 0.1), Metric("clip", 2)])
        log.log_timing(3, [Metric("update_s", 1.5)])
    assert folder.metrics_path.read_text() == '{"step": 3, "reward": 0.1, "clip": 2.0}\n'
    assert folder.timings_path.read_text() == '{"step": 3, "update_s": 1.5}\n'


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.floats(), min_size=1, max_size=5))
def test_numbers_come_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    folder = RunFolder.create(tmp_path_factory.mktemp("metrics") / "run")
    with MetricsLog.create(folder) as log:
        for step, value in enumerate(values):
            log.log(step, [Metric("x", value)])
    got = read_metrics(folder.metrics_path).values[:, 0]
    expected = np.array([value if math.isfinite(value) else math.nan for value in values])
    assert got.tobytes() == expected.tobytes()


def test_a_number_that_is_not_finite_is_null(folder: RunFolder) -> None:
    with MetricsLog.create(folder) as log:
        log.log(0, [Metric("loss", math.nan), Metric("kl", math.inf), Metric("lr", 1e-5)])
    assert json.loads(folder.metrics_path.read_text()) == {
        "step": 0,
        "loss": None,
        "kl": None,
        "lr": 1e-5,
    }


def test_the_table_has_a_column_per_name_and_nan_where_a_line_has_none(folder: RunFolder) -> None:
    with MetricsLog.create(folder) as log:
        log.log(0, [Metric("loss", 2.0)])
        log.log(1, [Metric("loss", 1.0), Metric("success_rate", 0.25)])
        log.log(1, [Metric("success_rate", 0.5)])
    table = read_metrics(folder.metrics_path)
    assert table.names == ("loss", "success_rate")
    assert table.steps.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(table.values, [[2.0, np.nan], [1.0, 0.25], [np.nan, 0.5]])
    steps, values = table.column("success_rate")
    assert (steps.tolist(), values.tolist()) == ([1, 1], [0.25, 0.5])
    with pytest.raises(UnknownNameError, match="got metric 'reward', expected one of: loss, succ"):
        table.column("reward")


def test_environment_steps_are_those_of_the_log_or_so_many_per_step(folder: RunFolder) -> None:
    lines = ['{"step": 1, "a": 1}', '{"step": 2}', '{"step": 4, "a": 1}']
    folder.metrics_path.write_text("\n".join(lines) + "\n")
    table = read_metrics(folder.metrics_path)
    assert table.environment_steps(table.column("a").steps, per_step=10).tolist() == [10, 40]
    taken = [line.replace("{", f'{{"environment_steps": {n}, ') for n, line in enumerate(lines, 7)]
    folder.metrics_path.write_text("\n".join(taken) + "\n")
    table = read_metrics(folder.metrics_path)
    assert table.environment_steps(table.column("a").steps, per_step=10).tolist() == [7, 24]


def test_an_empty_log_is_an_empty_table(folder: RunFolder) -> None:
    MetricsLog.create(folder).close()
    table = read_metrics(folder.metrics_path)
    assert (table.steps.shape, table.names, table.values.shape) == ((0,), (), (0, 0))


@pytest.mark.parametrize("torn", ['{"ste', '{"step": 2, "loss": 0.5}'])
def test_a_last_line_without_its_end_is_passed_over(folder: RunFolder, torn: str) -> None:
    folder.metrics_path.write_text('{"step": 1, "loss": 2.0}\n' + torn)
    assert read_metrics(folder.metrics_path).steps.tolist() == [1]


@pytest.mark.parametrize("line", ["garbage", "[1]", '{"loss": 1.0}', '{"step": 1, "x": "y"}', ""])
def test_a_whole_line_that_is_no_log_is_refused(folder: RunFolder, line: str) -> None:
    folder.metrics_path.write_text('{"step": 1}\n' + line + "\n")
    with pytest.raises(StorageError, match=r"metrics\.jsonl: got line 2 = .*, expected") as error:
        read_metrics(folder.metrics_path)
    assert "\n" not in str(error.value)


def test_a_missing_log_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"m\.jsonl: cannot be read: No such file"):
        read_metrics(tmp_path / "m.jsonl")


# Resume


def log_steps(log: MetricsLog, steps: range) -> None:
    for step in steps:
        log.log(step, [Metric("loss", 1 / (step + 1))])
        log.log_timing(step, [Metric("update_s", 0.1)])


def test_a_killed_run_resumes_to_an_equal_log(tmp_path: Path) -> None:
    straight, killed = (RunFolder.create(tmp_path / name) for name in ("straight", "killed"))
    with MetricsLog.create(straight) as log:
        log_steps(log, range(6))

    log = MetricsLog.create(killed)
    log_steps(log, range(3))
    position = log.position()  # The checkpoint; what follows is lost with the process.
    log_steps(log, range(3, 5))
    log.close()
    with killed.metrics_path.open("ab") as file:
        file.write(b'{"step": 5, "lo')
    with MetricsLog.resume(killed, position) as log:
        log_steps(log, range(3, 6))

    assert killed.metrics_path.read_bytes() == straight.metrics_path.read_bytes()
    assert read_metrics(killed.timings_path).steps.tolist() == list(range(6))


def test_a_run_killed_before_its_first_checkpoint_starts_its_log_again(folder: RunFolder) -> None:
    with MetricsLog.create(folder) as log:
        log_steps(log, range(3))
    with MetricsLog.resume(folder, MetricsPosition()) as log:
        log_steps(log, range(1))
    assert read_metrics(folder.metrics_path).steps.tolist() == [0]


@pytest.mark.parametrize("metrics_bytes", [10, 10**6], ids=["inside a line", "past the end"])
def test_a_position_that_ends_no_line_is_refused(folder: RunFolder, metrics_bytes: int) -> None:
    with MetricsLog.create(folder) as log:
        log_steps(log, range(3))
    before = folder.metrics_path.read_bytes()
    with pytest.raises(StorageError, match=rf"expected a line to end at byte {metrics_bytes}"):
        MetricsLog.resume(folder, MetricsPosition(metrics_bytes, 0, 0))
    assert folder.metrics_path.read_bytes() == before


@pytest.mark.filterwarnings("default")
def test_tensorboard_forgets_what_was_logged_after_the_position(folder: RunFolder) -> None:
    from tensorboard.backend.event_processing import event_accumulator as accumulators

    with MetricsLog.create(folder) as log:
        log_steps(log, range(3))
        position = log.position()
        log_steps(log, range(3, 5))
    with MetricsLog.resume(folder, position) as log:
        log_steps(log, range(3, 4))
    accumulator = accumulators.EventAccumulator(str(folder.tensorboard_dir))
    accumulator.Reload()
    for name in ("loss", "update_s"):
        assert [event.step for event in accumulator.Scalars(name)] == [0, 1, 2, 3]


# What is refused


def test_a_new_run_never_writes_into_an_old_log(folder: RunFolder) -> None:
    MetricsLog.create(folder).close()
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl: is there already"):
        MetricsLog.create(folder)


def test_a_step_that_goes_back_is_refused(folder: RunFolder) -> None:
    with MetricsLog.create(folder) as log:
        log.log(2, [])
        with pytest.raises(ValueError, match="got 1 after 2"):
            log.log(1, [])


@pytest.mark.parametrize("name", ["loss", "step"])
def test_a_name_twice_in_a_line_is_refused(folder: RunFolder, name: str) -> None:
    with MetricsLog.create(folder) as log, pytest.raises(ValueError, match=f"'{name}' twice"):
        log.log(0, [Metric("loss", 1.0), Metric(name, 1.0)])
    assert folder.metrics_path.read_bytes() == b""


# Disks that refuse


def refusing(code: int, *, after_bytes: int) -> Callable[[int, bytes, int], int]:
    """A write that takes some bytes, three at a time as a slow disk may, and then no more."""
    pwrite, left = os.pwrite, [after_bytes]

    def write(descriptor: int, data: bytes, offset: int) -> int:
        if not left[0]:
            raise OSError(code, os.strerror(code))
        n = pwrite(descriptor, data[: min(3, left[0])], offset)
        left[0] -= n
        return n

    return write


def test_a_write_in_pieces_is_whole(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with MetricsLog.create(folder) as log:
        monkeypatch.setattr(os, "pwrite", refusing(errno.ENOSPC, after_bytes=10**6))
        log.log(0, [Metric("loss", 0.5)])
    assert folder.metrics_path.read_text() == '{"step": 0, "loss": 0.5}\n'


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_is_one_line_and_leaves_whole_lines(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    with MetricsLog.create(folder) as log:
        log.log(0, [Metric("loss", 0.5)])
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", refusing(code, after_bytes=10))
            with pytest.raises(StorageError) as error:
                log.log(1, [Metric("loss", 0.25)])
        assert str(error.value) == f"{folder.metrics_path}: cannot be written: {os.strerror(code)}"
        assert folder.metrics_path.read_text() == '{"step": 0, "loss": 0.5}\n'
        log.log(1, [Metric("loss", 0.25)])  # Somebody made room.
    assert read_metrics(folder.metrics_path).column("loss").values.tolist() == [0.5, 0.25]


def test_a_folder_that_takes_no_file_is_one_line(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError, match=r"metrics\.jsonl: cannot be written: Permission"):
        MetricsLog.create(folder)
