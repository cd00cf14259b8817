"""A run folder: where everything that one run leaves behind lies, and who may write it.

config.yaml        the settings, resolved; its presence makes the folder a run
environment.txt    versions and machine
metrics.jsonl      one line per log; equal for a run that was killed and resumed
timings.jsonl      wall-clock numbers, which are never equal
logs.json          a seal of both logs
tensorboard/       the same scalars
trackers.json      what else gets them
checkpoints/       step_N/
trajectories/      *.parquet
published/ work/   weights for engines, and episodes for workers, where there are any
evaluation.json
evaluation_episodes.parquet  the held-out episodes behind it
faithfulness.json
faithfulness.svg   whether actions follow from thoughts
report.html
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from forethought.durable import temporary_name, write_text
from forethought.errors import RunFolderError

LOG_SEALS = "logs.json"
TRACKERS = "trackers.json"
_LOCK = ".lock"
_HOLDER = ".holder"


@dataclass(frozen=True)
class RunFolder:
    """The layout of one run. Get one from `create` (to write) or `open` (to read)."""

    path: Path

    def __fspath__(self) -> str:
        """A run can be given wherever its path can."""
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def config_path(self) -> Path:
        return self.path / "config.yaml"

    @property
    def environment_path(self) -> Path:
        return self.path / "environment.txt"

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def timings_path(self) -> Path:
        return self.path / "timings.jsonl"

    @property
    def log_seals_path(self) -> Path:
        """How much of both logs is certain; see `runs/log_seals.py`."""
        return self.path / LOG_SEALS

    @property
    def tensorboard_dir(self) -> Path:
        return self.path / "tensorboard"

    @property
    def checkpoints_dir(self) -> Path:
        return self.path / "checkpoints"

    @property
    def trajectories_dir(self) -> Path:
        return self.path / "trajectories"

    @property
    def pairs_dir(self) -> Path:
        """Which of the stored answers were compared, one file per shard."""
        return self.path / "pairs"

    @property
    def published_dir(self) -> Path:
        return self.path / "published"

    @property
    def work_dir(self) -> Path:
        return self.path / "work"

    @property
    def evaluation_path(self) -> Path:
        return self.path / "evaluation.json"

    @property
    def evaluation_episodes_path(self) -> Path:
        return self.path / "evaluation_episodes.parquet"

    @property
    def faithfulness_path(self) -> Path:
        return self.path / "faithfulness.json"

    @property
    def faithfulness_plot_path(self) -> Path:
        return self.path / "faithfulness.svg"

    @property
    def report_path(self) -> Path:
        return self.path / "report.html"

    @property
    def is_run(self) -> bool:
        """Whether a run was started here: its settings were written."""
        return self.config_path.is_file()

    @classmethod
    def create(
        cls, path: Path, *, existing: Literal["refuse", "resume", "overwrite"] = "refuse"
    ) -> "RunFolder":
        """Makes the folder for a run, or takes up one that is there.

        Args:
            path: missing, empty, or a run.
            existing: what to do with a run that is there: refuse, keep all of it,
                or delete what it left. A folder that is no run is never touched.

        Raises:
            RunFolderError: a run is there and is to be refused, or is being written by
                another process; something else is there; the folder cannot be made.
        """
        folder = cls(path)
        with _refusals(path):
            if folder.is_run and existing == "refuse":
                raise RunFolderError(
                    f"{path}: holds a run already — continue it with --resume, "
                    "replace it with --overwrite, or name another folder"
                )
            folder._refuse_foreign_files()
            path.mkdir(parents=True, exist_ok=True)
            if existing == "overwrite":
                with folder.lock():
                    folder._remove_run()
            folder.checkpoints_dir.mkdir(exist_ok=True)
            folder.trajectories_dir.mkdir(exist_ok=True)
        return folder

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """A run that is there, to be read; takes no lock.

        Raises:
            RunFolderError: the folder is missing, or has no `config.yaml`.
        """
        folder = cls(path)
        with _refusals(path):
            if not path.is_dir():
                raise RunFolderError(f"{path}: does not exist — expected a run folder")
            if not folder.is_run:
                missing = folder.config_path.name
                raise RunFolderError(f"{path}: is not a run folder: {missing} is missing")
        return folder

    @contextmanager
    def lock(self) -> Generator[None]:
        """Holds the folder: one process at a time writes a run.

        The kernel gives the lock back when its holder dies, however it dies.

        Raises:
            RunFolderError: another process holds it; the line names that process.
        """
        lock = FileLock(self.path / _LOCK, thread_local=False)
        with _refusals(self.path):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise RunFolderError(
                    f"{self.path}: is being written by {self._holder()} — wait until it ends, "
                    "or name another folder"
                ) from None
        try:
            now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
            write_text(self.path / _HOLDER, f"process {os.getpid()}, started {now}")
            yield
        finally:
            with suppress(OSError):  # It only names the holder; the lock is what counts.
                (self.path / _HOLDER).unlink(missing_ok=True)
            lock.release()

    def forget_rounds_after(self, step: int) -> None:
        """Deletes what was played in later rounds, and which of it was compared: a run that goes
        on behind `step` plays them again, perhaps in fewer processes.

        Raises:
            RunFolderError: the disk refuses.
        """
        with _refusals(self.path):
            for folder in (self.trajectories_dir, self.pairs_dir):
                for path in folder.glob("step_*_process_*"):
                    if int(path.name.split("_")[1]) > step:
                        path.unlink()

    def write_environment(self, *, torch_threads: int) -> None:
        """Writes `environment.txt`: versions, commit, and what the machine gives us.

        Raises:
            StorageError: the file cannot be written.
        """
        write_text(self.environment_path, describe_environment(torch_threads=torch_threads))

    def _files(self) -> tuple[Path, ...]:
        """All that a run leaves here."""
        return (
            self.config_path,  # First: once it is gone, what remains is no run.
            self.environment_path,
            self.metrics_path,
            self.timings_path,
            self.log_seals_path,
            self.tensorboard_dir,
            self.path / TRACKERS,
            self.checkpoints_dir,
            self.trajectories_dir,
            self.pairs_dir,
            self.published_dir,
            self.work_dir,
            self.evaluation_path,
            self.evaluation_episodes_path,
            self.faithfulness_path,
            self.faithfulness_plot_path,
            self.report_path,
        )

    def _refuse_foreign_files(self) -> None:
        """Refuses a folder that holds something and is no run, not even one that hardly began."""
        if self.is_run or not self.path.exists():
            return
        files = (*self._files(), self.path / _HOLDER)
        ours = {path.name for file in files for path in (file, temporary_name(file))} | {_LOCK}
        foreign = sorted(path.name for path in self.path.iterdir() if path.name not in ours)
        if foreign:
            raise RunFolderError(
                f"{self.path}: is not a run folder and not empty: it holds {foreign[0]} — "
                "name another folder"
            )

    def _remove_run(self) -> None:
        for path in self._files():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _holder(self) -> str:
        with suppress(OSError):
            return (self.path / _HOLDER).read_text(encoding="utf-8")
        return "another process"


@contextmanager
def _refusals(path: Path) -> Generator[None]:
    """Turns what a file system can refuse into one line that names the run."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be used as a run folder: {error.strerror}") from error


PACKAGES = (
    *("forethought", "torch", "transformers", "tokenizers", "peft"),
    *("accelerate", "safetensors", "gymnasium", "numpy", "pillow"),
    *("pyarrow", "pyyaml", "tyro", "tqdm", "tensorboard"),
    *("matplotlib", "filelock", "packaging", "uvicorn", "httptools"),
)
"""Whose versions `environment.txt` names: this package and what it depends on."""


def describe_environment(*, torch_threads: int) -> str:
    """One fact a line; no paths, no names of persons or machines.

    Args:
        torch_threads: as set by the caller, for this room does not import torch.
    """
    lines = [
        f"python {platform.python_version()}",
        *(f"{name} {_version(name)}" for name in PACKAGES),
        f"commit {_commit()}",
        f"system {platform.system()} {platform.machine()}",
        f"cpus {os.cpu_count()}",
        f"torch threads {torch_threads}",
    ]
    return "\n".join(lines) + "\n"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """The commit of this source, if it lies in a checkout of its own."""
    # An installed package may lie inside somebody else's checkout, whose commit says nothing.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return "unknown"
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return "unknown"
    is_clean = _git("diff", "--quiet", "HEAD") is not None
    return commit if is_clean else f"{commit} with local changes"


def _git(*arguments: str) -> str | None:
    """What git prints about this source folder, or None where it fails or is not there."""
    try:
        result = subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
