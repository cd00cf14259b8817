"""λ-PPO and its relatives without a critic."""

from forethought.algorithms.registry import Algorithm, Preset

DESCRIPTION = """\
Reinforcement learning of thoughts and actions, from rewards (λ-PPO).

Starts from a model that can respond already, as a rule the run folder of `train sft`.

Examples:
  forethought train ppo --model runs/sft --environment.id NumberLine --output runs/ppo
  forethought train ppo --config configs/quickstart_ppo.yaml --optimizer.learning-rate 3e-5
  forethought train ppo --resume runs/ppo
"""

ALGORITHM = Algorithm(
    name="ppo",
    summary="Reinforcement learning of thoughts and actions, from rewards.",
    description=DESCRIPTION.strip(),
    config="forethought.algorithms.ppo.config:PPOConfig",
    train="forethought.algorithms.ppo.train:train_ppo",
    plan="forethought.algorithms.ppo.train:plan_ppo",
    check="forethought.training.plan:check_language",
    presets=(
        Preset(
            "grpo",
            "GRPO: episodes of one start, compared by mean and standard deviation; no critic.",
            (("advantage", "grpo"), ("group_size", 8)),
        ),
        Preset(
            "rloo",
            "RLOO: each episode against the mean of the others of its start; no critic.",
            (("advantage", "rloo"), ("group_size", 8)),
        ),
        Preset(
            "dr-grpo",
            "Dr. GRPO: GRPO without the division by the standard deviation.",
            (("advantage", "dr_grpo"), ("group_size", 8)),
        ),
        Preset(
            "reinforce++",
            "REINFORCE++: returns normalized over the whole batch; no critic, no groups.",
            (("advantage", "reinforce_plus_plus"),),
        ),
        Preset(
            "gigpo",
            "GiGPO: episodes of one start compared, and steps that were taken in one state.",
            (("advantage", "gigpo"), ("group_size", 8)),
        ),
        Preset(
            "vl-dac",
            "VL-DAC: a ratio per token, no λ; a critic per step that does not move the model.",
            (
                ("ratio", "token"),
                ("loss_aggregation", "sequence_mean"),
                ("thought_weight", 1.0),
                ("critic_gradient", "head"),
                ("critic_warmup", 2),
                ("kl_coefficient", 0.04),
            ),
        ),
    ),
)
