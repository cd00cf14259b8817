"""How fast is it? Each benchmark runs ours and a baseline alternately, in one process."""

from collections.abc import Iterator

from forethought.bench.contract import Benchmark, BenchmarkResult


def _environments() -> Iterator[BenchmarkResult]:
    from forethought.bench.chess import measure_chess
    from forethought.bench.environments import measure_environments

    yield from measure_environments()
    yield from measure_chess()


def _alfworld() -> Iterator[BenchmarkResult]:
    from forethought.bench.alfworld import measure_alfworld, measure_expert

    yield from measure_expert()
    yield from measure_alfworld()


def _decoding() -> Iterator[BenchmarkResult]:
    from forethought.bench.decoding import measure_decoding

    return measure_decoding()


def _ppo() -> Iterator[BenchmarkResult]:
    from forethought.bench.ppo import measure_ppo

    return measure_ppo()


def _q_sft() -> Iterator[BenchmarkResult]:
    from forethought.bench.q_sft import measure_q_sft

    return measure_q_sft()


def _store() -> Iterator[BenchmarkResult]:
    from forethought.bench.store import measure_store

    return measure_store()


def _threads() -> Iterator[BenchmarkResult]:
    from forethought.bench.threads import measure_threads

    return measure_threads()


BENCHMARKS: dict[str, Benchmark] = {
    "environments": _environments,
    "alfworld": _alfworld,
    "decoding": _decoding,
    "ppo": _ppo,
    "q_sft": _q_sft,
    "store": _store,
    "threads": _threads,
}
"""By the name under which `forethought bench` knows them; each loads only what it measures."""

__all__ = ["BENCHMARKS", "Benchmark", "BenchmarkResult"]
