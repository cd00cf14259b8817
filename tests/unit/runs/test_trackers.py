"""The numbers of a log go to every tracker that was named, and to none of them twice."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from forethought.errors import MissingDependencyError
from forethought.runs.metrics import MetricsLog, MetricsPosition
from forethought.runs.run_folder import TRACKERS, RunFolder
from forethought.runs.trackers import TrackerName, logging_to
from forethought.types import Metric
from tests.skips import needs

INSTALL = 'pip install "forethought[tracking]"'


def require(package: str) -> None:
    """Skips where a tracker is not installed."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(needs(package, INSTALL))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run")


def log_and_resume(folder: RunFolder, *names: TrackerName) -> None:
    """Steps 0, 1 and 2 are logged; a run that was killed goes on from step 1 with 1, 2 and 3."""
    with logging_to(names), MetricsLog.create(folder) as log:
        log.log(0, [Metric("x", 0.0)])
        position = log.position()
        log.log(1, [Metric("x", 1.0)])
        log.log(2, [Metric("x", 2.0)])
    with MetricsLog.resume(folder, position) as log:
        for step in (1, 2, 3):
            log.log(step, [Metric("x", float(step))])


def test_tensorboard_alone_is_usual_and_leaves_no_note(folder: RunFolder) -> None:
    with MetricsLog.create(folder) as log:
        log.log(0, [Metric("x", 1.0)])
    assert list(folder.tensorboard_dir.glob("events.*"))
    assert not (folder.path / TRACKERS).exists()


def test_a_tracker_that_is_not_installed_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError) as refused, logging_to(["wandb"]):
        pass
    assert str(refused.value) == f"--log wandb needs wandb — run: {INSTALL}"


def test_without_a_tracker_the_log_is_written_all_the_same(folder: RunFolder) -> None:
    with logging_to([]), MetricsLog.create(folder) as log:
        log.log(0, [Metric("x", 1.0)])
    assert not folder.tensorboard_dir.exists()
    assert json.loads(folder.metrics_path.read_text()) == {"step": 0, "x": 1.0}


def wandb_steps(folder: RunFolder) -> Iterator[tuple[int, float]]:
    """Steps and values in the files that W&B would send."""
    from wandb.proto import wandb_internal_pb2

    for path in sorted(folder.path.glob("wandb/offline-run-*/*.wandb")):
        for data in leveldb_records(path.read_bytes()[7:]):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = {"/".join(i.nested_key) or i.key: i.value_json for i in record.history.item}
                yield record.history.step.num, float(items["x"])


def leveldb_records(log: bytes) -> Iterator[bytes]:
    """Records of a file in LevelDB's log format, shorter than one block of 32 KiB."""
    whole, at = b"", 0
    while at + 7 <= len(log):
        size, kind = int.from_bytes(log[at + 4 : at + 6], "little"), log[at + 6]
        whole += log[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # Whole, or its last part.
            yield whole
            whole = b""


@pytest.mark.filterwarnings("default")
def test_wandb_gets_every_step_once(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    require("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    log_and_resume(folder, "wandb")
    assert list(wandb_steps(folder)) == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]
    assert json.loads((folder.path / TRACKERS).read_text())["log"] == ["wandb"]


@pytest.mark.filterwarnings("default")
def test_trackio_gets_every_step_once(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On this machine: nothing is sent, and no page is opened."""
    require("trackio")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    log_and_resume(folder, "trackio")
    from trackio.sqlite_storage import SQLiteStorage

    run = json.loads((folder.path / TRACKERS).read_text())["run"]
    rows = SQLiteStorage.get_logs("forethought", run)
    assert [(row["step"], row["x"]) for row in rows] == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_log_that_begins_again_sends_what_was_sent_to_tensorboard_alone(
    folder: RunFolder,
) -> None:
    """Killed before its first checkpoint: the position is the beginning."""
    with MetricsLog.create(folder) as log:
        log.log(0, [Metric("x", 1.0)])
        log.log_timing(0, [Metric("s", 1.0)])
    with MetricsLog.resume(folder, MetricsPosition()) as log:
        trackers = vars(log)["_trackers"]
        assert vars(trackers)["_sent"] == 2
        log.log(0, [Metric("x", 1.0)])
        assert vars(trackers)["_sent"] == 1
