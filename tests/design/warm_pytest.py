"""Runs pytest in processes that have imported the libraries already.

Most of a short test run is the import of torch and transformers. Here a server imports them once
and forks a process for each run; `forethought` itself is imported by each process, from the copy
that it is given.
"""

import multiprocessing
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LIBRARIES = ["torch", "transformers", "peft", "accelerate", "gymnasium", "pyarrow", "pytest"]
_SECONDS = 300  # no entry takes that long; one that breaks a loop's end does

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(_LIBRARIES)


@dataclass(frozen=True)
class Verdict:
    """pytest's exit code (negative: the signal that ended it), and what it printed."""

    code: int
    output: str


def run_tests(package: Path, *tests: str) -> Verdict:
    """Runs the checkout's tests on another copy of the package, in a process of their own.

    Args:
        package: FOLDER/src/forethought. What the tests leave behind goes into FOLDER.
        tests: pytest's ids, below `tests`.
    """
    output = package.parents[1] / "output.txt"
    process = _processes.Process(target=_run, args=(package, output, tests))
    process.start()
    process.join(_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode is not None
    return Verdict(process.exitcode, output.read_text(encoding="utf-8", errors="replace"))


def _run(package: Path, output: Path, tests: tuple[str, ...]) -> None:
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.chdir(package.parents[1])
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        del os.environ[name]  # the outer run's
    os.environ |= {
        "PYTHONPATH": str(package.parent),  # and so for the processes that a test starts
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        # Plugins of installed packages (anyio's) are imported by now: too late for pytest.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    sys.dont_write_bytecode = True
    assert "forethought" not in sys.modules
    sys.path.insert(0, str(package.parent))
    settings = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}", "-pno:cacheprovider"]
    try:
        code = pytest.main([*settings, *(str(ROOT / "tests" / test) for test in tests)])
    except BaseException:
        traceback.print_exc()
        code = pytest.ExitCode.INTERNAL_ERROR  # 1, Python's own, would mean that a test failed
    sys.exit(code)
