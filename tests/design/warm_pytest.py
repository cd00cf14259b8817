"""Runs pytest in processes that have imported the libraries already.

Most of a short test run is the import of torch and transformers. Here a server imports them once
and forks a process for each run; `forethought` itself is imported by each process, from the copy
that it is given.

The server is a process of its own. Python's fork server is one for all who use it, and the tests
of durability let theirs load `forethought`: every breakage would be tried on the sound package.
"""

import importlib
import json
import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LIBRARIES = ["torch", "transformers", "peft", "accelerate", "gymnasium", "pyarrow"]
_SECONDS = 300  # no entry takes that long; one that breaks a loop's end does


@dataclass(frozen=True)
class Verdict:
    """pytest's exit code (negative: the signal that ended it), and what it printed."""

    code: int
    output: str


RunTests = Callable[..., Verdict]
"""Runs the checkout's tests on another copy of the package, in a process of their own: takes
FOLDER/src/forethought, where FOLDER is what the tests may leave things in, and pytest's ids, below
`tests`."""


@contextmanager
def warm_pytest() -> Generator[RunTests]:
    """A server, until the block ends."""
    command = [sys.executable, "-m", "tests.design.warm_pytest"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as server:
        yield partial(_ask, server)


def _ask(server: subprocess.Popen[str], package: Path, *tests: str) -> Verdict:
    assert server.stdin is not None
    assert server.stdout is not None
    output = package.parents[1] / "output.txt"
    print(json.dumps([str(package), str(output), tests]), file=server.stdin, flush=True)
    code = int(server.stdout.readline())
    return Verdict(code, output.read_text(encoding="utf-8", errors="replace"))


def _serve() -> None:
    for library in _LIBRARIES:
        importlib.import_module(library)
    fork = multiprocessing.get_context("fork")
    for line in sys.stdin:
        package, output, tests = json.loads(line)
        process = fork.Process(target=_run, args=(Path(package), output, tests))
        process.start()
        process.join(_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
        print(process.exitcode, flush=True)


def _run(package: Path, output: str, tests: list[str]) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # The next request is not this run's to read.
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    try:
        code = _tested(package, tests)
    except BaseException:
        traceback.print_exc()
        code = pytest.ExitCode.INTERNAL_ERROR  # 1, Python's own, would mean that a test failed
    sys.exit(code)


def _tested(package: Path, tests: list[str]) -> int:
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
    return pytest.main([*settings, *(str(ROOT / "tests" / test) for test in tests)])


if __name__ == "__main__":
    _serve()
