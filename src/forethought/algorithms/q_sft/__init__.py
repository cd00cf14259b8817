"""Q-learning by supervised fine-tuning."""

from forethought.algorithms.registry import Algorithm

DESCRIPTION = """\
Q-SFT: learn from stored episodes to act better than whoever played them.

First one model imitates the data (unless --bc-epochs is 0: then --model does
already), then a second one learns probabilities that are values. How much the values
count, β, is set when the run is evaluated.

Examples:
  forethought train q-sft --data data/wordle --environment.id Wordle \\
      --prompt.format action_only --output runs/wordle_q_sft
  forethought collect --policy data --environment.id Wordle --prompt.format action_only \\
      --episodes 20000 --output data/wordle
  forethought evaluate runs/wordle_q_sft --beta 0 4 16 64
"""

ALGORITHM = Algorithm(
    name="q-sft",
    summary="Offline reinforcement learning: values as probabilities, from stored episodes.",
    description=DESCRIPTION.strip(),
    config="forethought.algorithms.q_sft.config:QSFTConfig",
    train="forethought.algorithms.q_sft.train:train_q_sft",
    plan="forethought.algorithms.q_sft.train:plan_q_sft",
    check="forethought.training.plan:check_language",
)
