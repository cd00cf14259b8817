"""Offline ArCHer."""

from forethought.algorithms.registry import Algorithm

DESCRIPTION = """\
Offline ArCHer: learn what whole responses are worth, and imitate the better ones.

The other baseline of Q-SFT on the same data. First one model imitates the data (unless
--bc-epochs is 0: then --model does already), then a copy of it learns values of
responses, then the first one imitates again, each response weighted by its advantage.

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
