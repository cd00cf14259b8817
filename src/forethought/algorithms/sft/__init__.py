"""Supervised fine-tuning."""

from forethought.algorithms.registry import Algorithm, Preset

DESCRIPTION = """\
Supervised fine-tuning: learn to respond as the environment's expert does.

By default the tiny model, randomly initialized, learns from demonstrations that are
played on the spot; --model and --data name others.

Examples:
  forethought train sft --environment.id NumberLine --output runs/sft
  forethought train sft --config configs/quickstart_sft.yaml --dry-run
  forethought train sft --resume runs/sft
"""

ALGORITHM = Algorithm(
    name="sft",
    summary="Supervised fine-tuning: learn to respond as the environment's expert does.",
    description=DESCRIPTION.strip(),
    config="forethought.algorithms.sft.config:SFTConfig",
    train="forethought.algorithms.sft.train:train_sft",
    plan="forethought.algorithms.sft.steps:plan_sft",
    check="forethought.algorithms.sft.steps:check_sft",
    presets=(
        Preset(
            "bc",
            "Behavior cloning: SFT on stored episodes instead of an expert's.",
            (("data", "data/trajectories"),),
        ),
    ),
)
