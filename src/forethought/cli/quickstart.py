"""`forethought quickstart`: train a small model from scratch, evaluate it, write its report."""

import json
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Literal

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.sft.config import SFTConfig
from forethought.cli.evaluate import Evaluate, evaluate_with_bar
from forethought.cli.flags import Switch
from forethought.cli.interrupts import continued_by
from forethought.cli.terminal import evaluation_table
from forethought.configs.contract import AnyConfig
from forethought.configs.file import dump_config
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    RolloutConfig,
    SamplingConfig,
    require,
)
from forethought.errors import RunFolderError, StorageError
from forethought.evaluation.evaluate import EvaluationSettings
from forethought.evaluation.results import Evaluation, EvaluationRow
from forethought.libraries import load_quietly
from forethought.runs.checkpoints import newest_checkpoint
from forethought.runs.run_folder import RunFolder

MAX_NEW_TOKENS = 48
"""An expert's response has 30."""


@dataclass(frozen=True)
class Quickstart:
    """Where to, and with which seed."""

    output: str = "runs/quickstart"
    """The run folder; its start, supervised fine-tuning, gets a folder beside it."""

    seed: int = 0
    """Seed of all random choices."""

    episodes: int = 500
    """Held-out episodes on which each of the two policies is evaluated."""

    overwrite: Switch = False
    """Start again; by default, an earlier quickstart is resumed."""

    threads: int | None = None
    """CPU threads of PyTorch; by default OMP_NUM_THREADS, else one fewer than there are cores."""

    def __post_init__(self) -> None:
        require(self.episodes >= 1, "episodes", self.episodes, "1 or more")


def quickstart(settings: Quickstart) -> None:
    """Train the tiny model from scratch on a game, evaluate it, and write a report, in minutes.

    A vision-language model with random weights and no vocabulary learns NumberLine: it
    reads two numbers in an image, thinks in words, and moves one toward the other. SFT on
    an expert that reads rightly and acts at random teaches it to read and to write; PPO
    teaches it to act, from the environment's rewards. Both
    policies are evaluated on held-out episodes: success, and whether their thoughts are
    true and lead to the action. The last line is one JSON object with the figures.

    Examples:
      forethought quickstart
      forethought quickstart --seed 1 --output runs/quickstart_1
    """
    started = perf_counter()
    sft, ppo = sft_config(settings), ppo_config(settings)
    for config in (sft, ppo):
        _make_way(config, settings)
    with continued_by(lambda: f"continue with: {_same_again(settings)}"):
        load_quietly(threads=settings.threads)
        from forethought.algorithms.ppo.train import train_ppo
        from forethought.algorithms.sft.train import train_sft
        from forethought.reports import write_report

        say(f"1/5  SFT on {sft.expert_steps} steps of an expert that acts at random")
        train_sft(sft, existing=_existing(sft))
        say(f"2/5  evaluate the SFT policy on {settings.episodes} held-out episodes")
        before = _judged(sft, settings)
        say(f"3/5  PPO: learn from the rewards of {ppo.total_steps} steps")
        train_ppo(ppo, existing=_existing(ppo))
        say("4/5  evaluate again, on the same episodes")
        after = _judged(ppo, settings)
        say("5/5  write the report")
        report = write_report(Path(ppo.output))
    _print_figures(before, after, report, seconds=perf_counter() - started)


def sft_config(settings: Quickstart) -> SFTConfig:
    """One epoch of responses whose claims are true and whose actions are random: the numbers are
    read, the form is learned, and no action is preferred, so that PPO tries them all.
    configs/quickstart_sft.yaml holds the same."""
    return SFTConfig(
        output=f"{settings.output}_sft",
        seed=settings.seed,
        expert_steps=4000,
        epochs=1.0,
        batch_size=32,
        environment=EnvironmentConfig(options=("expert=random_choice",)),
        optimizer=OptimizerConfig(
            learning_rate=2e-3,
            final_learning_rate=2e-3,
            schedule="constant",
            warmup_steps=20,
            epsilon=1e-8,
        ),
        compute=ComputeConfig(threads=settings.threads),
    )


def ppo_config(settings: Quickstart) -> PPOConfig:
    """A short horizon, for every step of this game is paid at once; little weight on the
    critic, whose error would otherwise move the model more than the rewards do. Every step
    pays for its distance from the SFT policy: a misread number that is sampled together with
    a good action would otherwise be rewarded with it, and be learned.
    configs/quickstart_ppo.yaml holds the same."""
    return PPOConfig(
        model=sft_config(settings).output,
        output=settings.output,
        seed=settings.seed,
        total_steps=5120,
        kl_coefficient=0.5,
        kl_use="reward",
        gamma=0.5,
        clip=0.3,
        value_coefficient=0.05,
        value_clip=None,
        epochs=3,
        batch_size=128,
        rollout=RolloutConfig(
            sampling=SamplingConfig(temperature=1.0, max_new_tokens=MAX_NEW_TOKENS),
            on_invalid="penalize",
        ),
        optimizer=OptimizerConfig(
            learning_rate=1e-4, final_learning_rate=1e-6, schedule="linear", warmup_steps=8
        ),
        compute=ComputeConfig(threads=settings.threads),
    )


def say(line: str) -> None:
    """One line about what comes next, apart from the results on stdout."""
    print(line, file=sys.stderr, flush=True)


def _make_way(config: AnyConfig, settings: Quickstart) -> None:
    """Deletes what is to be overwritten; refuses to continue what is not this command's.

    Raises:
        RunFolderError: the folder holds other files.
    """
    folder = RunFolder(Path(config.output))
    if not folder.is_run:
        return
    if settings.overwrite:
        RunFolder.create(folder.path, existing="overwrite")
    elif folder.config_path.read_text(encoding="utf-8") != dump_config(config):
        raise RunFolderError(
            f"{folder.path}: holds a run with other settings — replace it with --overwrite, "
            "or name another --output"
        )


def _existing(config: AnyConfig) -> Literal["refuse", "resume"]:
    """An earlier run is resumed; a finished one is left as it is."""
    return "resume" if RunFolder(Path(config.output)).is_run else "refuse"


def _judged(config: AnyConfig, settings: Quickstart) -> Evaluation:
    """Evaluation of the run's last checkpoint; it is played once only."""
    folder = RunFolder(Path(config.output))
    checkpoint = newest_checkpoint(folder.checkpoints_dir).name
    if folder.evaluation_path.exists():
        try:
            stored = Evaluation.from_json(folder.evaluation_path.read_text(encoding="utf-8"))
        except StorageError as error:
            raise StorageError(f"{folder.evaluation_path}: {error}") from None
        if stored.checkpoint == checkpoint and stored.policy.episodes == settings.episodes:
            return stored
    found = evaluate_with_bar(
        Evaluate(
            run=config.output,
            evaluation=EvaluationSettings(
                settings.episodes,
                sampling=SamplingConfig(temperature=0.0, max_new_tokens=MAX_NEW_TOKENS),
            ),
            threads=settings.threads,
            environment=config.environment,
            prompt=config.prompt,
        )
    )
    return found.evaluation


def _print_figures(before: Evaluation, after: Evaluation, report: Path, *, seconds: float) -> None:
    """A table for people, then one line for programs."""
    print()
    for line in evaluation_table(after, began_as=before.policy):
        print(line)
    print(f"\nreport: {report}\n")
    interval = after.policy.success_interval
    figures: dict[str, object] = {
        "sft_success_rate": before.policy.success_rate,
        "ppo_success_rate": after.policy.success_rate,
        "success_interval": None if interval is None else list(interval),
        "episodes": after.policy.episodes,
        "sft_thoughts": _thought_figures(before.policy),
        "ppo_thoughts": _thought_figures(after.policy),
        "seconds": round(seconds, 1),
        "report": str(report),
    }
    print(json.dumps(figures))


def _thought_figures(row: EvaluationRow) -> dict[str, float | None]:
    """Shares; None where nothing of the kind was said."""
    thoughts = row.thoughts
    rates = {
        "perception_accuracy": thoughts.perception_accuracy,
        "inference_accuracy": thoughts.inference_accuracy,
        "thought_action_consistency": thoughts.thought_action_consistency,
        "strict_format": thoughts.strict_format,
    }
    return {name: None if rate is None else rate.share for name, rate in rates.items()}


def _same_again(settings: Quickstart) -> str:
    """The command that resumes; without --overwrite, which would delete the run once more."""
    words = ["forethought quickstart"]
    for field in fields(Quickstart):
        value = getattr(settings, field.name)
        if field.name != "overwrite" and value != field.default:
            words.append(f"--{field.name} {value}")
    return " ".join(words)
