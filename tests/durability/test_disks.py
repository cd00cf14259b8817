"""A disk that is full, or read-only, or broken: one line, and nothing that was there is lost."""

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.durability.commands import Outcome, Strike, run
from tests.durability.comparison import assert_same_run
from tests.durability.conftest import UNTRAINED, resumed
from tests.skips import needs

pytestmark = pytest.mark.slow


@contextmanager
def mounted(*options: str, at: Path) -> Generator[Callable[[str], None]]:
    """Mounts; gives what changes the mount's options."""
    at.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, at], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(needs("the right to mount", "sudo make test-slow"))

    def remount(option: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{option}", at], check=True)

    try:
        yield remount
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def assert_refused(outcome: Outcome, reason: str, folder: Path) -> None:
    assert outcome.code == 2, outcome.err
    *before, line = outcome.lines
    assert [one for one in before if not one.startswith(UNTRAINED)] == []
    assert line.startswith("error: ")
    assert reason in line
    assert str(folder) in line
    assert not outcome.out


def test_a_disk_that_fills_up_again_and_again(ppo: str, whole_ppo: Path, tmp_path: Path) -> None:
    """One run on a small disk, which grows a little after each refusal. A checkpoint has
    about 14 MB; two are kept while a third is written."""
    disk = tmp_path / "disk"
    with mounted("-t", "tmpfs", "-o", "size=4k", "tmpfs", at=disk) as change:
        folder = disk / "ppo"
        for size in ("8k", "32k", "2m", "9m", "20m", "34m"):
            change(f"size={size}")
            refused = run(resumed(ppo, folder))
            assert_refused(refused, "No space left on device", folder)
        change("size=64m")
        assert run(resumed(ppo, folder)).code == 0
        assert_same_run(folder, whole_ppo)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
BROKEN = OSError(errno.EIO, os.strerror(errno.EIO))
REFUSALS = [
    ("os:pwrite", 1, FULL),  # the first line of the log
    ("os:pwrite", 6, FULL),  # the timings of the third iteration
    ("os:fsync", 1, BROKEN),  # who holds the folder
    ("os:fsync", 4, BROKEN),  # the settings, which were there before
    ("os:fsync", 12, BROKEN),  # the first shard
    ("os:fsync", 20, BROKEN),  # within a checkpoint
    ("forethought.rollouts.store:to_table", 3, FULL),
    ("forethought.training.state:save_file", 2, FULL),
    ("forethought.runs.checkpoints:shutil.rmtree", 1, BROKEN),
]


def test_a_disk_that_refuses_here_and_there(ppo: str, whole_ppo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ppo"
    for place, call, error in REFUSALS:
        refused = run(resumed(ppo, folder), strike=Strike(place, call, error))
        assert error.strerror is not None
        assert_refused(refused, error.strerror, folder)
    assert run(resumed(ppo, folder)).code == 0
    assert_same_run(folder, whole_ppo)


def test_a_read_only_run_folder(whole_sft: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole_sft, tmp_path / "sft")
    shutil.rmtree(folder / "checkpoints" / "step_10")
    with mounted("--bind", str(folder), at=folder) as change:
        change("bind,ro")
        for words in (f"train sft --resume {folder}", f"evaluate {folder} --threads 1"):
            assert_refused(run(words), "Read-only file system", folder)
    assert run(f"train sft --resume {folder}").code == 0
    assert_same_run(folder, whole_sft)
