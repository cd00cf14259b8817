"""Q-Transformer."""

from forethought.algorithms.registry import Algorithm

DESCRIPTION = """\
Q-Transformer: learn the value of every token of an action, from stored episodes.

Each token of a response is a dimension of the action; its value is the best value of the next
one. The model's logits are the log-odds of the values, so the run's greedy policy (temperature 0)
takes the best token of each dimension. It is trained from scratch, without behavior cloning.

Examples:
  forethought train q-transformer --data data/pick --environment.id Manipulation \\
      --prompt.format action_only --output runs/pick_q_transformer
  forethought evaluate runs/pick_q_transformer --episodes 200
"""

ALGORITHM = Algorithm(
    name="q-transformer",
    summary="Offline Q-learning, one dimension of an action at a time (Chebotar et al. 2023).",
    description=DESCRIPTION.strip(),
    config="forethought.algorithms.q_transformer.config:QTransformerConfig",
    train="forethought.algorithms.q_transformer.train:train_q_transformer",
    plan="forethought.algorithms.q_transformer.train:plan_q_transformer",
    check="forethought.training.plan:check_language",
)
