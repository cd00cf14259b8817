"""`forethought bench`."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import tyro

from forethought.bench import BENCHMARKS, BenchmarkResult
from forethought.cli.flags import Switch
from forethought.cli.settings import describe
from forethought.cli.tables import align
from forethought.errors import UnknownNameError

ALL = "all"
"""In place of every benchmark's name."""


@dataclass(frozen=True)
class Bench:
    """What is measured."""

    names: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="[NAME ...]")
    ] = ()
    """Benchmarks; `all` runs every one. Without a name they are listed."""

    json: Switch = False
    """Print a JSON list, for programs."""


def bench(settings: Bench) -> None:
    """Metric speed, beside a baseline: both run in turn, in this process, on one core.

    environments  steps per second with pictures, beside Gymnasium's own vector loop; where
                  Stockfish is there, games of chess with two engines beside one (two cores).
    alfworld      milliseconds per start and per step beside the package's own engine, on 200
                  games in which both must say the same; games made per second, and how many
                  of 600 the expert solves. Needs the extra; takes a quarter of an hour.
    decoding      tokens per second, beside Hugging Face's `generate`: as our equal (dtype,
                  distribution, logits kept), and at its defaults, as a plain user calls it.
    ppo           whole iterations in environment steps per second, beside the plain loop:
                  one environment, answers generated and scored one by one, updates of one
                  step at a time. Checks first that both give equal log-probs and gradients.
    q_sft         training tokens per second of Q-SFT's second phase, with its two further
                  forward passes, beside supervised fine-tuning on the same rows.
    store         tokens per second of training data read from Parquet, beside the same data in
                  memory: laid out as batches, and taken through the tiny model.
    threads       seconds per training step alone, beside the same with another process that
                  takes a core: by number of threads and by how they wait.

    The ratio is the median over the pairs, with the lowest and the highest; above 1 ours is
    faster. Peak is the most memory that the process held meanwhile, ours and the baseline's:
    both sides' weights and Python itself are in it, so look at the difference. Leave the
    machine alone meanwhile. `all` takes an hour or more; without a name nothing is measured.

    Examples:
      forethought bench environments
      forethought bench decoding ppo
      forethought bench ppo --json > ppo.json
    """
    for name in settings.names:
        if name not in (ALL, *BENCHMARKS):
            known = ", ".join((*BENCHMARKS, ALL))
            raise UnknownNameError(f"unknown benchmark {name!r} — known: {known}")
    if not settings.names:
        print(describe(bench))
        return
    results = list(_measure(tuple(BENCHMARKS) if ALL in settings.names else settings.names))
    if settings.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    header = ("", "ours", "baseline", "unit", "ratio [lowest, highest]", "peak MiB")
    for line in align([header, *map(_cells, results)]):
        print(line)


def _measure(names: tuple[str, ...]) -> Iterator[BenchmarkResult]:
    for name in names:
        for result in BENCHMARKS[name]():
            print(f"measured {result.name}", file=sys.stderr)
            yield result


def _cells(result: BenchmarkResult) -> tuple[str, ...]:
    spread = (
        f" [{result.ratio_low:.2f}, {result.ratio_high:.2f}]"
        if result.ratio_low is not None and result.ratio_high is not None
        else ""
    )
    return (
        result.name,
        _number(result.value),
        "–" if result.baseline is None else _number(result.baseline),
        result.unit,
        "–" if result.ratio is None else f"{result.ratio:.2f}{spread}",
        _peaks(result),
    )


def _peaks(result: BenchmarkResult) -> str:
    """Ours and the baseline's, main memory and the GPU's: 712 / 805, GPU 1,024 / 2,048."""
    peaks = [peak for peak in (result.peak, result.baseline_peak) if peak is not None]
    resident = [f"{p.resident_mib:,.0f}" for p in peaks if p.resident_mib is not None]
    gpu = [f"{p.gpu_mib:,.0f}" for p in peaks if p.gpu_mib is not None]
    parts = [" / ".join(resident), f"GPU {' / '.join(gpu)}" if gpu else ""]
    return ", ".join(part for part in parts if part) or "–"


def _number(value: float) -> str:
    """Three digits at least: 8.3, 77.2, 2,960."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
