"""A run folder is used by those who may, and refused in one line to all others."""

import errno
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from forethought.durable import write_text
from forethought.errors import RunFolderError, StorageError
from forethought.runs.run_folder import PACKAGES, RunFolder


def start_run(path: Path) -> RunFolder:
    """A run that left a bit of everything."""
    folder = RunFolder.create(path)
    for file in (
        folder.config_path,
        folder.metrics_path,
        folder.evaluation_path,
        folder.evaluation_episodes_path,
    ):
        file.write_text("old")
    (folder.checkpoints_dir / "step_1").mkdir()
    (folder.checkpoints_dir / "step_1" / "model.safetensors").write_text("old")
    return folder


def names(path: Path) -> set[str]:
    return {file.name for file in path.iterdir() if not file.name.startswith(".")}


# create


@pytest.mark.parametrize("existing", ["refuse", "resume", "overwrite"])
def test_a_missing_or_empty_folder_becomes_a_run_folder(tmp_path: Path, existing: str) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "missing" / "deep", tmp_path / "empty"):
        folder = RunFolder.create(path, existing=existing)  # type: ignore[arg-type]
        assert names(path) == {"checkpoints", "trajectories"}
        assert not folder.is_run


def test_a_run_is_refused_with_the_ways_on(tmp_path: Path) -> None:
    start_run(tmp_path / "run")
    with pytest.raises(RunFolderError) as error:
        RunFolder.create(tmp_path / "run")
    assert str(error.value) == (
        f"{tmp_path / 'run'}: holds a run already — continue it with --resume, "
        "replace it with --overwrite, or name another folder"
    )


def test_resume_keeps_everything(tmp_path: Path) -> None:
    start_run(tmp_path / "run")
    folder = RunFolder.create(tmp_path / "run", existing="resume")
    assert folder.metrics_path.read_text() == "old"
    assert (folder.checkpoints_dir / "step_1" / "model.safetensors").exists()


def test_overwrite_removes_what_the_run_left_and_nothing_else(tmp_path: Path) -> None:
    (start_run(tmp_path / "run").path / "notes.txt").write_text("mine")
    folder = RunFolder.create(tmp_path / "run", existing="overwrite")
    assert names(folder.path) == {"checkpoints", "trajectories", "notes.txt"}
    assert list(folder.checkpoints_dir.iterdir()) == []


def test_overwrite_follows_no_link_out_of_the_run(tmp_path: Path) -> None:
    folder = start_run(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "shard.parquet").write_text("mine")
    folder.trajectories_dir.rmdir()
    folder.trajectories_dir.symlink_to(tmp_path / "elsewhere")
    RunFolder.create(folder.path, existing="overwrite")
    assert (tmp_path / "elsewhere" / "shard.parquet").exists()


@pytest.mark.parametrize("existing", ["refuse", "resume", "overwrite"])
def test_a_folder_of_something_else_is_never_touched(tmp_path: Path, existing: str) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(RunFolderError, match=r"not empty: it holds thesis\.tex"):
        RunFolder.create(tmp_path, existing=existing)  # type: ignore[arg-type]
    assert names(tmp_path) == {"thesis.tex"}


def test_a_run_killed_before_its_settings_were_written_is_no_run(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.environment_path.touch()
    (folder.path / ".config.yaml.tmp").touch()
    with folder.lock():
        pass
    (folder.path / "..holder.tmp").touch()
    RunFolder.create(tmp_path / "run")


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(RunFolderError, match="cannot be used as a run folder: Not a directory"):
        RunFolder.create(tmp_path / "run")


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_disk_that_refuses_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RunFolderError) as error:
        RunFolder.create(tmp_path / "run")
    assert str(error.value).endswith(f"run: cannot be used as a run folder: {os.strerror(code)}")


# open


def test_open_gives_a_run_and_names_what_is_missing(tmp_path: Path) -> None:
    assert RunFolder.open(start_run(tmp_path / "run").path).path == tmp_path / "run"
    with pytest.raises(RunFolderError, match="does not exist"):
        RunFolder.open(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match=r"is not a run folder: config\.yaml is missing"):
        RunFolder.open(tmp_path)


# lock


HOLD_AND_REPORT = """
import sys
from pathlib import Path
from forethought.runs.run_folder import RunFolder
with RunFolder(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(folder: RunFolder) -> subprocess.Popen[str]:
    """A process that holds the folder until its input is closed, or it dies."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_AND_REPORT, str(folder.path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_another_process_is_refused_until_the_holder_ends(tmp_path: Path) -> None:
    folder = start_run(tmp_path / "run")
    with hold(folder) as process:
        with pytest.raises(RunFolderError) as error, folder.lock():
            pass
        assert re.fullmatch(
            rf"{folder.path}: is being written by process {process.pid}, started "
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d — wait until it ends, "
            r"or name another folder",
            str(error.value),
        )
        with pytest.raises(RunFolderError, match=f"process {process.pid}"):
            RunFolder.create(folder.path, existing="overwrite")
        assert folder.metrics_path.exists()
        process.communicate("")
    with folder.lock():
        pass


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    folder = start_run(tmp_path / "run")
    with hold(folder) as process:
        process.kill()
    with folder.lock():
        assert f"process {os.getpid()}," in (folder.path / ".holder").read_text()


def test_a_worker_that_outlives_its_killed_run_holds_nothing(tmp_path: Path) -> None:
    """Forked workers inherit open files; the lock must not live on in them."""
    folder = start_run(tmp_path / "run")
    code = HOLD_AND_REPORT.replace(
        '    print("held", flush=True)',
        # The worker says it: by then it has let go of what it inherited.
        '    import os\n    if not os.fork():\n        print("held", flush=True)',
    )
    command = [sys.executable, "-c", code, str(folder.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "held\n"
        run.kill()
        run.wait()
        with folder.lock():  # The worker still waits for its input to close.
            pass


def test_a_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    folder = start_run(tmp_path / "run")
    with pytest.raises(ZeroDivisionError), folder.lock():
        raise ZeroDivisionError
    with folder.lock(), pytest.raises(RunFolderError, match="is being written"), folder.lock():
        pass


# files


def test_rounds_behind_a_checkpoint_are_forgotten(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.pairs_dir.mkdir()
    names = [f"step_{step:06d}_process_{process}" for step in (9, 10, 100) for process in (0, 1)]
    for name in names:
        (folder.trajectories_dir / f"{name}.parquet").touch()
        (folder.pairs_dir / f"{name}.jsonl").touch()
    folder.forget_rounds_after(10)
    for kept in (folder.trajectories_dir, folder.pairs_dir):
        assert sorted(path.stem for path in kept.iterdir()) == names[:4]


def test_the_environment_is_written_in_words(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.write_environment(torch_threads=7)
    lines = folder.environment_path.read_text().splitlines()
    assert lines[0].startswith("python 3.")
    assert lines[-1] == "torch threads 7"
    facts = [line.split(" ")[0] for line in lines]
    assert {"torch", "numpy", "commit", "cpus"} <= set(facts)
    assert str(Path.home()) not in folder.environment_path.read_text()


def test_every_dependency_is_named_in_the_environment() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    dependencies = [re.split(r"[<>=]", line)[0] for line in project["dependencies"]]
    assert list(PACKAGES) == ["forethought", *dependencies]


def test_without_git_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = RunFolder.create(tmp_path / "run")
    folder.write_environment(torch_threads=1)
    assert "commit unknown" in folder.environment_path.read_text().splitlines()


def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yaml"
    write_text(path, "λ: 0.5\n")
    assert path.read_bytes() == "λ: 0.5\n".encode()

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError, match=r"config\.yaml: cannot be written: No space left"):
        write_text(path, "λ: 0.2\n")
    assert path.read_bytes() == "λ: 0.5\n".encode()
    assert [file.name for file in tmp_path.iterdir()] == ["config.yaml"]


def test_reading_needs_no_torch() -> None:
    code = (
        "import sys, forethought.runs.metrics, forethought.runs.run_folder; "
        "raise SystemExit('torch' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
