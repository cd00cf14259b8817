"""Two training processes of one thread each, beside one process of two threads."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.contract import BenchmarkResult, Pair, compare

PAIRS = 3
SFT_UPDATES, PPO_ITERATIONS = 20, 4
"""The first of each is not counted."""

_TWO_PROCESSES = ("--processes", "2", "--compute.threads", "1")
_TWO_THREADS = ("--compute.threads", "2")
_SFT_ROWS, _PPO_STEPS = 32, 256


def measure_processes(
    *, pairs: int = PAIRS, updates: int = SFT_UPDATES, iterations: int = PPO_ITERATIONS
) -> Iterator[BenchmarkResult]:
    """Steps per second of SFT and of PPO on NumberLine, by the clocks of the runs themselves:
    collecting, scoring and updates, without the start of the processes."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        rows = ("--expert-steps", str(updates * _SFT_ROWS), "--batch-size", str(_SFT_ROWS))
        yield _compare("processes/SFT", ("sft", *rows), home, pairs, _SFT_ROWS)
        steps = ("--total-steps", str(iterations * _PPO_STEPS), "--batch-size", "64")
        rollout = ("--rollout.steps-per-iteration", str(_PPO_STEPS), "--rollout.num-envs", "32")
        sft = home / "processes/SFT/0/threads"
        ppo = ("ppo", "--model", str(sft), *steps, *rollout, "--epochs", "2")
        ppo = (*ppo, "--rollout.max-new-tokens", "48")
        yield _compare("processes/PPO", ppo, home, pairs, _PPO_STEPS)


def _compare(
    name: str, words: Sequence[str], home: Path, pairs: int, steps: int
) -> BenchmarkResult:
    measured = [
        Pair(
            _train(words, _TWO_PROCESSES, home / f"{name}/{pair}/processes", steps),
            _train(words, _TWO_THREADS, home / f"{name}/{pair}/threads", steps),
        )
        for pair in range(pairs)
    ]
    return compare(name, "steps/s", measured)


def _train(words: Sequence[str], ways: Sequence[str], output: Path, steps: int) -> float:
    """Steps per second of a run, its first update or iteration left out."""
    command = [sys.executable, "-m", "forethought", "train", *words, *ways]
    others = {name: value for name, value in os.environ.items() if "OMP_" not in name}
    subprocess.run(
        [*command, "--environment.id", "NumberLine", "--output", str(output)],
        check=True,
        capture_output=True,
        env=others,
    )
    lines = (output / "timings.jsonl").read_text().splitlines()[1:]
    seconds = sum(
        value
        for line in lines
        for name, value in json.loads(line).items()
        if name.endswith("_s") and not name.endswith("_per_s")
    )
    return steps * len(lines) / seconds
