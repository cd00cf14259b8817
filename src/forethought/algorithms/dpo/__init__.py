"""Preference optimization, step by step."""

from forethought.algorithms.registry import Algorithm

DESCRIPTION = """\
Preference optimization of thoughts and actions, step by step (InteractiveCOT).

Of two responses in one state, the one after which the episode went better is preferred.
Starts from a model that can respond already, which is the reference, too.

Examples:
  forethought train dpo --model runs/sft --environment.id EZPoints --output runs/dpo
  forethought train dpo --config configs/bandit_dpo.yaml --pairing branch --loss-type sigmoid
  forethought train dpo --config configs/bandit_dpo.yaml --data runs/bandit/trajectories
  forethought train dpo --resume runs/dpo
"""

ALGORITHM = Algorithm(
    name="dpo",
    summary="Preference optimization of thoughts and actions, step by step.",
    description=DESCRIPTION.strip(),
    config="forethought.algorithms.dpo.config:DPOConfig",
    train="forethought.algorithms.dpo.train:train_dpo",
    plan="forethought.algorithms.dpo.train:plan_dpo",
    check="forethought.training.plan:check_language",
)
