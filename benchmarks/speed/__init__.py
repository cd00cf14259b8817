"""How fast is it? Each benchmark runs ours and a baseline alternately, in one process."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from benchmarks.speed.contract import Benchmark, BenchmarkResult
from forethought.cli.terminal import align
from forethought.errors import UnknownNameError

ALL = "all"
"""In place of every benchmark's name."""


def _environments() -> Iterator[BenchmarkResult]:
    from benchmarks.speed.chess import measure_chess
    from benchmarks.speed.environments import measure_environments

    yield from measure_environments()
    yield from measure_chess()


def _alfworld() -> Iterator[BenchmarkResult]:
    from benchmarks.speed.alfworld import measure_alfworld, measure_expert

    yield from measure_expert()
    yield from measure_alfworld()


def _decoding() -> Iterator[BenchmarkResult]:
    from benchmarks.speed.decoding import measure_decoding

    return measure_decoding()


def _conversations() -> Iterator[BenchmarkResult]:
    from benchmarks.speed.conversations import measure_conversations

    return measure_conversations()


def _ppo() -> Iterator[BenchmarkResult]:
    from benchmarks.speed.ppo import measure_ppo

    return measure_ppo()


def _q_sft() -> Iterator[BenchmarkResult]:
    from benchmarks.speed.q_sft import measure_q_sft

    return measure_q_sft()


def _store() -> Iterator[BenchmarkResult]:
    from benchmarks.speed.store import measure_store

    return measure_store()


def _processes() -> Iterator[BenchmarkResult]:
    from benchmarks.speed.processes import measure_processes

    return measure_processes()


def _threads() -> Iterator[BenchmarkResult]:
    from benchmarks.speed.threads import measure_threads

    return measure_threads()


BENCHMARKS: dict[str, Benchmark] = {
    "environments": _environments,
    "alfworld": _alfworld,
    "decoding": _decoding,
    "conversations": _conversations,
    "ppo": _ppo,
    "q_sft": _q_sft,
    "store": _store,
    "processes": _processes,
    "threads": _threads,
}
"""By the name under which `forethought bench` knows them; each loads only what it measures."""

__all__ = ["BENCHMARKS", "Benchmark", "BenchmarkResult", "measure"]


def measure(names: Sequence[str], *, as_json: bool) -> None:
    """Runs benchmarks one after the other and prints their results.

    Raises:
        UnknownNameError: there is no benchmark of a name.
    """
    for name in names:
        if name not in (ALL, *BENCHMARKS):
            known = ", ".join((*BENCHMARKS, ALL))
            raise UnknownNameError(f"unknown benchmark {name!r} — known: {known}")
    results = list(_results(tuple(BENCHMARKS) if ALL in names else names))
    if as_json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    header = ("", "ours", "baseline", "unit", "ratio [lowest, highest]", "peak MiB")
    for line in align([header, *map(_cells, results)]):
        print(line)


def _results(names: Sequence[str]) -> Iterator[BenchmarkResult]:
    for name in names:
        for result in BENCHMARKS[name]():
            # At once: what was measured is not lost where a later one fails.
            print("measured", *_cells(result), sep="  ", file=sys.stderr)
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
