"""Q-learning by supervised fine-tuning."""

from forethought.algorithms.registry import Algorithm

DESCRIPTION = """\
Q-SFT: learn from stored episodes a policy that is better than the behavior policy.

Phase 1 is behavior cloning (skipped with --bc-epochs 0, where --model is a BC policy
already). Phase 2 trains a second model whose probabilities are values. Their weight in
policy extraction, β, is set when the run is evaluated.

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
