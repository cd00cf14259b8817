"""Benchmarks measure what they say; how fast the machine is, is not tested."""

from pathlib import Path

import pytest
import torch

from benchmarks.speed import BENCHMARKS, BenchmarkResult
from benchmarks.speed.chess import measure_chess
from benchmarks.speed.contract import Pair, compare
from benchmarks.speed.conversations import measure_conversations
from benchmarks.speed.decoding import DTYPES, load_as_published, measure_decoding
from benchmarks.speed.environments import measure_environments
from benchmarks.speed.models import make_models
from benchmarks.speed.ppo import (
    GRADIENT_TOLERANCE,
    LOGPROB_TOLERANCE,
    measure_ppo,
    require_equal,
)
from benchmarks.speed.processes import measure_processes
from benchmarks.speed.q_sft import measure_q_sft
from benchmarks.speed.store import measure_store
from benchmarks.speed.threads import measure_threads, ways
from forethought.cli.main import main
from forethought.environments.chess.engine import PACKAGE, find_stockfish
from forethought.libraries import usable_cores
from tests.skips import needs
from tests.unit.environments.manipulation.renderer import REASON


def test_without_a_name_nothing_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """All together take an hour: `all` asks for it."""
    assert main(["bench"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name} " in listed for name in BENCHMARKS)
    assert main(["bench", "al"]) == 2
    assert "known: environments, " in capsys.readouterr().err


def test_an_installed_package_says_where_benchmarks_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("forethought.cli.bench.CHECKOUT", tmp_path)
    assert main(["bench", "decoding"]) == 2
    assert "run from a checkout" in capsys.readouterr().err


def test_more_is_better() -> None:
    """10 against 4, 12 against 6, 9 against 3 steps a second: ratios 2.5, 2 and 3."""
    pairs = [Pair(10, 4), Pair(12, 6), Pair(9, 3)]
    assert compare("a", "steps/s", pairs) == BenchmarkResult("a", 10, "steps/s", 4, 2.5, 2, 3)


def test_less_is_better() -> None:
    """2 ms against 6, 4 against 8, 5 against 5: three times, twice, and as fast."""
    pairs = [Pair(2, 6), Pair(4, 8), Pair(5, 5)]
    result = compare("a", "ms", pairs, less_is_better=True)
    assert result == BenchmarkResult("a", 4, "ms", 6, 2, 1, 3)


def test_every_environment_is_measured_with_small_and_large_images() -> None:
    results = list(measure_environments(pairs=1, seconds=0.001))
    assert [result.name for result in results] == [
        f"environments/{game}/{size}"
        for game in ("NumberLine", "EZPoints", "Points24", "Blackjack")
        for size in (64, 300)
    ] + ["environments/WebShop"] + ["environments/Manipulation/48"] * (REASON is None)
    assert all(result.value > 0 for result in results)
    assert all(result.ratio is not None for result in results[:8])


@pytest.mark.slow
@pytest.mark.skipif(find_stockfish() is None, reason=needs("Stockfish", PACKAGE))
def test_games_of_chess_are_counted() -> None:
    [result] = measure_chess(pairs=1, seconds=0.0)
    assert result.unit == "games/s"
    assert result.value > 0 < (result.baseline or 0)


@pytest.mark.slow
def test_every_architecture_is_measured_on_one_thread() -> None:
    threads = torch.get_num_threads()
    results = list(measure_decoding(pairs=1, requests=8))
    assert [result.name for result in results] == [
        f"decode/{model}/{what}"
        for model in ("tiny", "llama", "gpt2", "llava_next", "qwen2_5_vl")
        for what in (
            "token step",
            "prefill",
            "mixed",
            "mixed, at its defaults (fp32)",
            "mixed, at its defaults (bf16)",
        )
    ]
    assert all(result.value > 0 and result.ratio is not None for result in results)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("name", list(DTYPES))
def test_from_pretrained_takes_the_dtype_of_the_files(name: str) -> None:
    """Which is what `generate` at its defaults then computes in."""
    loaded = next(model.loaded for model in make_models() if model.name == "gpt2")
    published = load_as_published(loaded.model, DTYPES[name])
    assert published.dtype == DTYPES[name]
    assert loaded.model.dtype == torch.float32


def test_what_is_not_equal_is_not_compared() -> None:
    require_equal("gradients", 1e-4, 1e-3)
    with pytest.raises(RuntimeError, match=r"plain loop are 0\.01 apart"):
        require_equal("gradients", 0.01, 1e-3)
    with pytest.raises(RuntimeError, match="nan apart"):
        require_equal("gradients", float("nan"), 1e-3)


@pytest.mark.slow
def test_the_plain_loop_computes_the_same_and_the_phases_make_up_the_iteration() -> None:
    """Two iterations of four steps each; one that warms up and one that counts."""
    results = measure_ppo(environments=("NumberLine",), pairs=1, steps=4, slots=2, updates_before=1)
    by_name = {result.name.removeprefix("ppo/NumberLine/"): result for result in results}
    phases = ("collect", "recompute", "update")
    shares = [f"share of {phase}" for phase in phases]
    apart = ("log-probs apart", "gradients apart")
    assert list(by_name) == [*apart, "whole", *phases, *shares, "answer"]
    assert by_name["log-probs apart"].value <= LOGPROB_TOLERANCE
    assert by_name["gradients apart"].value <= GRADIENT_TOLERANCE
    seconds = sum(by_name[phase].value for phase in phases)
    assert 4 / by_name["whole"].value == pytest.approx(seconds)
    assert sum(by_name[share].value for share in shares) == pytest.approx(100)


def test_all_of_them_are_known_to_the_command() -> None:
    assert list(BENCHMARKS) == [
        "environments",
        "alfworld",
        "decoding",
        "conversations",
        "ppo",
        "q_sft",
        "store",
        "processes",
        "threads",
    ]


@pytest.mark.slow
def test_stored_data_are_measured_beside_those_in_memory() -> None:
    results = list(measure_store(episodes=6, trained_episodes=2, pairs=1))
    assert [(result.name, result.unit) for result in results] == [
        (f"store/{environment}/{what}", "tokens/s")
        for environment in ("Wordle", "EZPoints")
        for what in ("batches", "updates")
    ]
    assert all(result.value > 0 and result.ratio is not None for result in results)


@pytest.mark.slow
def test_each_way_to_wait_is_measured_alone_and_in_company() -> None:
    results = list(measure_threads(pairs=1, steps=1))
    assert [result.name for result in results] == [
        f"threads/{way.name}" for way in ways(usable_cores())
    ]
    assert all(result.value > 0 < (result.baseline or 0) for result in results)


@pytest.mark.slow
def test_processes_are_measured_beside_threads() -> None:
    results = list(measure_processes(pairs=1, updates=2, iterations=2))
    assert [result.name for result in results] == ["processes/SFT", "processes/PPO"]
    assert all(result.value > 0 < (result.baseline or 0) for result in results)


def test_the_ways_to_wait() -> None:
    """The default first; then every core, as OpenMP would have it, spinning less, and asleep."""
    found = ways(4)
    assert [(way.name, way.threads) for way in found] == [
        ("3 of 4 (default)", 3),
        ("4 of 4", 4),
        ("4 of 4, spins 10,000 times", 4),
        ("4 of 4, passive", 4),
    ]
    assert [dict(way.environ) for way in found] == [
        *({}, {}),
        {"GOMP_SPINCOUNT": "10000"},
        {"OMP_WAIT_POLICY": "PASSIVE"},
    ]


def test_values_are_learned_beside_imitation() -> None:
    (result,) = measure_q_sft(batch=2, pairs=1)
    assert (result.name, result.unit) == ("q_sft/training beside sft", "tokens/s")
    assert result.ratio is not None


@pytest.mark.slow
def test_of_a_game_of_wordle_most_of_each_prompt_is_known() -> None:
    results = measure_conversations(
        environments=("Wordle",), pairs=1, episodes=32, updates_before=2
    )
    speed, computed = results
    assert speed.value > 0 < (speed.baseline or 0)
    assert computed.value < 0.5 * (computed.baseline or 0)
