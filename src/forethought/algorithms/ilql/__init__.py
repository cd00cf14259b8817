"""Implicit language Q-learning."""

from forethought.algorithms.registry import Algorithm, Preset

DESCRIPTION = """\
ILQL: learn values of tokens in heads of their own, from stored episodes.

The baseline of Q-SFT on the same data; --targets makes it Q-learning (CQL) or the
regression of returns. First one model imitates the data (unless --bc-epochs is 0:
then --model does already), then a copy of it learns values.

Examples:
  forethought train ilql --data data/wordle --environment.id Wordle \\
      --prompt.format action_only --output runs/wordle_ilql
  forethought train ilql --data data/wordle --environment.id Wordle \\
      --prompt.format action_only --targets maximum --cql-weight 0.1 --output runs/wordle_cql
  forethought evaluate runs/wordle_ilql --beta 0 4 16 64
"""

ALGORITHM = Algorithm(
    name="ilql",
    summary="Offline reinforcement learning: values in heads of their own, from stored episodes.",
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
