"""Benchmarks measure what they say; how fast the machine is, is not tested."""

import pytest
import torch

from forethought.bench import BENCHMARKS, BenchmarkResult
from forethought.bench.contract import Pair, compare
from forethought.bench.decoding import measure_decoding
from forethought.bench.environments import measure_environments
from forethought.bench.ppo import measure_ppo


def test_more_is_better() -> None:
    """10 against 4, 12 against 6, 9 against 3 steps a second: ratios 2.5, 2 and 3."""
    pairs = [Pair(10, 4), Pair(12, 6), Pair(9, 3)]
    assert compare("a", "steps/s", pairs) == BenchmarkResult("a", 10, "steps/s", 4, 2.5, 2, 3)


def test_less_is_better() -> None:
    """2 ms against 6, 4 against 8, 5 against 5: three times, twice, and as fast."""
    pairs = [Pair(2, 6), Pair(4, 8), Pair(5, 5)]
    result = compare("a", "ms", pairs, less_is_better=True)
    assert result == BenchmarkResult("a", 4, "ms", 6, 2, 1, 3)


def test_every_world_is_measured_with_small_and_large_pictures() -> None:
    results = list(measure_environments(pairs=1, seconds=0.001))
    assert [result.name for result in results] == [
        f"environments/{game}/{size}"
        for game in ("NumberLine", "EZPoints", "Points24", "Blackjack")
        for size in (64, 300)
    ]
    assert all(result.value > 0 and result.ratio is not None for result in results)


@pytest.mark.slow
def test_every_architecture_is_measured_on_one_thread() -> None:
    threads = torch.get_num_threads()
    results = list(measure_decoding(pairs=1, requests=8))
    assert [result.name for result in results] == [
        f"decode/{model}/{what}"
        for model in ("tiny", "llama", "gpt2", "llava_next", "qwen2_5_vl")
        for what in ("token step", "prefill", "mixed")
    ]
    assert all(result.value > 0 and result.ratio is not None for result in results)
    assert torch.get_num_threads() == threads


@pytest.mark.slow
def test_the_phases_make_up_the_iteration() -> None:
    iteration, *phases = measure_ppo(iterations=2, updates_before=1)
    names = ("collect", "rescore", "update")
    assert [phase.name for phase in phases] == [
        *(f"ppo/{name}" for name in names),
        *(f"ppo/share of {name}" for name in names),
    ]
    assert sum(phase.value for phase in phases[:3]) == pytest.approx(iteration.value)
    assert sum(phase.value for phase in phases[3:]) == pytest.approx(100)


def test_all_of_them_are_known_to_the_command() -> None:
    assert list(BENCHMARKS) == ["environments", "decoding", "ppo"]
