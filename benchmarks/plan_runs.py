"""How long does training take, by its plan and by the clock?

    python -m benchmarks.plan_runs [NAME…]

Each row is a small run of the tiny model, in a process of its own. Predicted is what `--dry-run`
says of an optimizer step, of one that learns values, or of an iteration. Measured is the median of
those of the run, in processor time on one thread.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from itertools import pairwise
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

from forethought.cli.main import main as forethought
from forethought.training.optim import Updater
from forethought.training.run import Run

SFT = (
    "train sft --model tiny --environment.id Bandit --environment.options expert=random_choice "
    "--expert-steps 160 --batch-size 16 --compute.threads 1"
)
PLAYED = (
    "--model {before} --environment.id Bandit --rollout.max-new-tokens 48 --total-steps 256 "
    "--rollout.steps-per-iteration 64 --rollout.num-envs 32"
)
WORDLE = "--environment.id Wordle --prompt.format action_only"
COLLECT = f"collect --policy data {WORDLE} --episodes 64 --threads 1"
STEP, VALUES, ITERATION = (
    "step takes about",
    "that learns values at least",
    "an iteration at most about",
)


class Case(NamedTuple):
    """A run, what comes before it, and what is measured of it."""

    words: str
    before: str
    timed: str


CASES = {
    "sft": Case(SFT, "", STEP),
    "dpo": Case(f"train dpo {PLAYED} --batch-size 16 --pairs-per-iteration 64", SFT, ITERATION),
    "gigpo": Case(f"train gigpo {PLAYED} --batch-size 32", SFT, ITERATION),
    **{
        name: Case(
            f"train {name} --model tiny --data {{before}} {WORDLE} --batch-size 8", COLLECT, VALUES
        )
        for name in ("q-sft", "ilql", "archer", "q-transformer")
    },
}


def measure(case: Case) -> tuple[float, float]:
    """Predicted and measured seconds."""
    with TemporaryDirectory() as folder:
        before = f"{folder}/before"
        if case.before:
            _type(f"{case.before} --output {before}")
        words = f"{case.words.format(before=before)} --output {folder}/run --compute.threads 1"
        said = StringIO()
        with redirect_stderr(said):
            _type(f"{words} --dry-run")
        found = re.search(rf"{case.timed} ([\d.e-]+) s", said.getvalue())
        assert found is not None, said.getvalue()
        is_iteration = case.timed == ITERATION
        times = note_ends(Run, "record") if is_iteration else note_ends(Updater, "step")
        _type(words)
    gaps = [after - earlier for earlier, after in pairwise(times)]
    if case.timed == VALUES:
        gaps = gaps[-5:]  # Of the last phase: with ArCHer of the actor, which takes as many passes.
    return float(found[1]), median(gaps)


def note_ends(kind: type[Any], name: str) -> list[float]:
    """Processor time at the end of every call from now on."""
    sound: Callable[..., Any] = getattr(kind, name)
    times: list[float] = []

    def noted(*args: Any, **kwargs: Any) -> Any:
        result = sound(*args, **kwargs)
        times.append(process_time())
        return result

    setattr(kind, name, noted)
    return times


def _type(words: str) -> None:
    assert forethought(words.split()) == 0, words


def main(names: list[str]) -> None:
    """Prints a row for each case."""
    if len(names) != 1:
        for name in names or CASES:
            subprocess.run([sys.executable, "-m", "benchmarks.plan_runs", name], check=True)
        return
    predicted, measured = measure(CASES[names[0]])
    print(f"{names[0]}: {predicted:.2g} s predicted, {measured:.2g} s measured, ", end="")
    print(f"ratio {predicted / measured:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
