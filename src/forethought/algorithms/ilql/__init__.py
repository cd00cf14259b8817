"""Implicit language Q-learning."""

from forethought.algorithms.registry import Algorithm, Preset

DESCRIPTION = """\
ILQL: learn token values in Q heads and a V head, from stored episodes.

A baseline of Q-SFT on the same data; --targets makes it CQL or Monte-Carlo Q
regression. Phase 1 is behavior cloning (skipped with --bc-epochs 0, where --model is
a BC policy already). Phase 2 trains the values, in a copy of that model.

Examples:
  forethought train ilql --data data/wordle --environment.id Wordle \\
      --prompt.format action_only --output runs/wordle_ilql
  forethought train ilql --data data/wordle --environment.id Wordle \\
      --prompt.format action_only --targets maximum --cql-weight 0.1 --output runs/wordle_cql
  forethought evaluate runs/wordle_ilql --beta 0 4 16 64
"""

ALGORITHM = Algorithm(
    name="ilql",
    summary="Offline reinforcement learning: token values in Q heads, from stored episodes.",
    description=DESCRIPTION.strip(),
    config="forethought.algorithms.ilql.config:ILQLConfig",
    train="forethought.algorithms.ilql.train:train_ilql",
    plan="forethought.algorithms.ilql.train:plan_ilql",
    check="forethought.training.plan:check_language",
    presets=(
        Preset(
            "cql",
            "CQL: Q-learning that lowers the values of what the data do not hold.",
            (("targets", "maximum"), ("cql_weight", 0.1)),
        ),
    ),
)
