"""What a run's results are read from is what was written, or is refused by its name."""

import json
from pathlib import Path

import pytest

from forethought.durable import write_text
from forethought.errors import StorageError
from forethought.runs.metrics import MetricsLog, MetricsPosition, read_metrics
from forethought.runs.run_folder import RunFolder
from forethought.types import Metric


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = RunFolder.create(tmp_path / "run")
    write_text(run.config_path, "config_version: 2\n")
    return run


def logged(folder: RunFolder, lines: int = 4) -> MetricsPosition:
    """A log that ended; the position is after its second line."""
    position = MetricsPosition()
    with MetricsLog.create(folder) as log:
        for step in range(lines):
            log.log(step, [Metric("loss", 0.5 + step)])
            log.log_timing(step, [Metric("update_s", 0.25)])
            if step == 1:
                position = log.position()
    return position


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_every_altered_digit_is_refused(folder: RunFolder) -> None:
    logged(folder)
    for path in (folder.metrics_path, folder.timings_path):
        whole = path.read_bytes()
        for place in range(len(whole)):
            flip(path, place)
            with pytest.raises(StorageError, match=rf"{path.name}: its first {len(whole)} bytes"):
                read_metrics(path)
            path.write_bytes(whole)
        path.write_bytes(whole[:-3])
        with pytest.raises(StorageError, match="it was altered or cut short"):
            read_metrics(path)
        path.write_bytes(whole)
        read_metrics(path)


def test_what_is_logged_after_the_last_seal_is_not_sealed_yet(folder: RunFolder) -> None:
    with MetricsLog.create(folder) as log:
        log.log(0, [Metric("loss", 0.5)])
        assert not folder.log_seals_path.exists()
        log.position()
        log.log(1, [Metric("loss", 0.25)])
        assert read_metrics(folder.metrics_path).steps.tolist() == [0, 1]
    assert json.loads(folder.log_seals_path.read_text())["metrics.jsonl"][0] == len(
        folder.metrics_path.read_bytes()
    )


def test_a_run_goes_on_behind_its_seal(folder: RunFolder) -> None:
    """Also where it is killed after the seal was cut back, and before the log was."""
    position = logged(folder)
    longer = folder.metrics_path.read_bytes()
    with MetricsLog.resume(folder, position) as log:
        folder.metrics_path.write_bytes(longer)
        assert len(read_metrics(folder.metrics_path).steps) == 4
        folder.metrics_path.write_bytes(longer[: position.metrics_bytes])
        log.log(2, [Metric("loss", 9.0)])
    assert read_metrics(folder.metrics_path).column("loss").values.tolist() == [0.5, 1.5, 9.0]


@pytest.mark.parametrize("place", [3, 60])
def test_an_altered_log_does_not_go_on(folder: RunFolder, place: int) -> None:
    """Neither before the checkpoint nor after it; and it stays as it is."""
    position = logged(folder)
    flip(folder.metrics_path, place)
    altered = folder.metrics_path.read_bytes()
    with pytest.raises(StorageError, match="put it back, or start another run"):
        MetricsLog.resume(folder, position)
    assert folder.metrics_path.read_bytes() == altered


def test_an_altered_seal_is_refused(folder: RunFolder) -> None:
    logged(folder)
    whole = folder.log_seals_path.read_bytes()
    for place in range(0, len(whole), 7):
        if chr(whole[place]).isspace():
            continue
        flip(folder.log_seals_path, place)
        with pytest.raises(StorageError, match=r"logs\.json: |metrics\.jsonl: "):
            read_metrics(folder.metrics_path)
        folder.log_seals_path.write_bytes(whole)


def test_logs_of_older_runs_have_no_seal(folder: RunFolder) -> None:
    logged(folder)
    folder.log_seals_path.unlink()
    assert len(read_metrics(folder.metrics_path).steps) == 4
