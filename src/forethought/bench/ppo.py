"""Where the time of a PPO iteration goes, in the setting of `forethought quickstart`.

The model is first taught to answer, for one that was not answers with as many tokens as it
is let. Then it learns for three iterations, of which the last two are measured: the first
builds what later ones reuse.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from forethought.bench.contract import BenchmarkResult
from forethought.config import PPOConfig, SFTConfig
from forethought.config_parts import ComputeConfig, OptimizerConfig, RolloutConfig
from forethought.training.ppo import train_ppo
from forethought.training.sft import train_sft

PHASES = ("collect", "rescore", "update")
ITERATIONS = 3
UPDATES_BEFORE = 120


def measure_ppo(
    *, iterations: int = ITERATIONS, updates_before: int = UPDATES_BEFORE
) -> Iterator[BenchmarkResult]:
    """Seconds of each phase, and its share of the iteration, on one core.

    Args:
        iterations: of PPO, the first of which is not counted.
        updates_before: of supervised fine-tuning.
    """
    with TemporaryDirectory() as folder:
        start = train_sft(_sft_config(Path(folder) / "sft", updates_before), existing="refuse")
        run = train_ppo(_ppo_config(Path(folder) / "ppo", start, iterations), existing="refuse")
        lines = (run / "timings.jsonl").read_text(encoding="utf-8").splitlines()
    laps = [json.loads(line) for line in lines][1:]
    seconds = {phase: median(lap[f"{phase}_s"] for lap in laps) for phase in PHASES}
    whole = sum(seconds.values())
    yield BenchmarkResult("ppo/iteration", whole, "s", None, None)
    for phase in PHASES:
        yield BenchmarkResult(f"ppo/{phase}", seconds[phase], "s", None, None)
    for phase in PHASES:
        share = 100 * seconds[phase] / whole
        yield BenchmarkResult(f"ppo/share of {phase}", share, "%", None, None)


def _sft_config(output: Path, updates: int) -> SFTConfig:
    return SFTConfig(
        output=str(output),
        demonstrations=32,
        epochs=updates,  # of one batch
        batch_size=32,
        optimizer=OptimizerConfig(learning_rate=2e-3, schedule="constant", warmup_steps=20),
        compute=ComputeConfig(threads=1),
    )


def _ppo_config(output: Path, model: Path, iterations: int) -> PPOConfig:
    return PPOConfig(
        model=str(model),
        output=str(output),
        total_steps=512 * iterations,
        gamma=0.5,
        value_coefficient=0.05,
        value_clip=None,
        epochs=2,
        batch_size=128,
        rollout=RolloutConfig(
            steps_per_iteration=512, temperature=1.0, max_new_tokens=48, on_invalid="penalise"
        ),
        compute=ComputeConfig(threads=1),
    )
