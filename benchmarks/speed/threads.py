"""What a busy process beside it costs a training step, by threads and by how they wait.

How OpenMP's threads wait is read when torch is loaded, so each way has a process of its own. All
of them are started first and then asked in turn, each idle and beside a process that computes.
"""

import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from benchmarks.speed.contract import BenchmarkResult, Pair, compare
from forethought.libraries import choose_threads, usable_cores

PAIRS = 5
STEPS = 2
"""Of one measurement; there are two in a pair."""

ROWS, TOKENS = 8, 256
"""Of one step: the default size of a micro-batch."""

_POLICIES: dict[str, dict[str, str]] = {
    "": {},
    ", spins 10,000 times": {"GOMP_SPINCOUNT": "10000"},
    ", passive": {"OMP_WAIT_POLICY": "PASSIVE"},
}
"""How threads wait that have nothing to do; by default they spin."""

_COMPETITOR = "print(flush=True)\nwhile True: pass"


@dataclass(frozen=True)
class Way:
    """So many threads, which wait so."""

    name: str
    threads: int
    environ: Mapping[str, str] = field(default_factory=dict[str, str])


def ways(cores: int) -> list[Way]:
    """The default, and as many threads as there are cores."""
    chosen = choose_threads(None, cores=cores, environ={}).threads
    ours = Way(f"{chosen} of {cores} (default)", chosen)
    return [
        ours,
        *(Way(f"{cores} of {cores}{name}", cores, policy) for name, policy in _POLICIES.items()),
    ]


def measure_threads(*, pairs: int = PAIRS, steps: int = STEPS) -> Iterator[BenchmarkResult]:
    """Seconds per training step: ours idle, the baseline beside one busy process, so that the
    ratio is how much slower it makes us."""
    measured = ways(usable_cores())
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(way)) for way in measured]
        found: list[list[Pair]] = [[] for _ in workers]
        for _ in range(pairs):
            for worker, row in zip(workers, found, strict=True):
                idle = _ask(worker, steps)
                with _competitor():
                    row.append(Pair(idle, _ask(worker, steps)))
    for way, row in zip(measured, found, strict=True):
        yield compare(f"threads/{way.name}", "s/step", row, less_is_better=True)


@contextmanager
def _worker(way: Way) -> Generator["subprocess.Popen[str]"]:
    """A process that trains as often as it is told to, and says how long that took."""
    others = {name: value for name, value in os.environ.items() if "OMP_" not in name}
    with subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import train_steps; train_steps({way.threads})"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=others | dict(way.environ),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _competitor() -> Generator[None]:
    with subprocess.Popen([sys.executable, "-c", _COMPETITOR], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def _ask(worker: "subprocess.Popen[str]", steps: int) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{steps}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def train_steps(threads: int) -> None:
    """The worker's life: one number in, steps of the tiny model, seconds per step out."""
    import torch

    from benchmarks.speed.models import make_models

    torch.set_num_threads(threads)
    model = next(make_models()).loaded.model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(0)
    ids_BT = torch.randint(10, 100, (ROWS, TOKENS), generator=generator)

    def step() -> None:
        model(input_ids=ids_BT, labels=ids_BT).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    for line in sys.stdin:
        started = perf_counter()
        for _ in range(int(line)):
            step()
        print((perf_counter() - started) / int(line), flush=True)
