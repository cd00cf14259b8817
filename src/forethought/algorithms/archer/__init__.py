"""Offline ArCHer."""

from forethought.algorithms.registry import Algorithm

DESCRIPTION = """\
Offline ArCHer: learn utterance-level values, then clone the better responses.

A baseline of Q-SFT on the same data. Phase 1 is behavior cloning (skipped with
--bc-epochs 0, where --model is a BC policy already). Phase 2 trains the critic, a copy
of that model. Phase 3 is behavior cloning weighted by advantages.

Examples:
  forethought train archer --data data/wordle --environment.id Wordle \\
      --prompt.format action_only --output runs/wordle_archer
  forethought train archer --data data/wordle --environment.id Wordle \\
      --prompt.format action_only --beta 4 --output runs/wordle_archer_4
  forethought evaluate runs/wordle_archer
"""

ALGORITHM = Algorithm(
    name="archer",
    summary="Offline reinforcement learning: behavior cloning weighted by advantages.",
    description=DESCRIPTION.strip(),
    config="forethought.algorithms.archer.config:ArcherConfig",
    train="forethought.algorithms.archer.train:train_archer",
    plan="forethought.algorithms.archer.train:plan_archer",
    check="forethought.training.plan:check_language",
)
