"""How fast is it? Each benchmark runs ours and a baseline alternately, in one process."""

from forethought.bench.contract import Benchmark, BenchmarkResult
from forethought.bench.environments import measure_environments

BENCHMARKS: dict[str, Benchmark] = {"environments": measure_environments}
"""By the name under which `forethought bench` knows them."""

__all__ = ["BENCHMARKS", "Benchmark", "BenchmarkResult"]
