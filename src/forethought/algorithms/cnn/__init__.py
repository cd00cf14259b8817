"""The baseline without words: PPO of a small network."""

from forethought.algorithms.registry import Algorithm

DESCRIPTION = """\
A small network that sees and acts, and says nothing: the baseline without words.

For worlds with a picture and a fixed list of actions. Its convolutions are made from
nothing; --model names a model whose vision tower sees for it instead.

Examples:
  forethought train cnn --environment.id NumberLine --output runs/cnn
  forethought train cnn --config configs/cards/cnn_ez_points.yaml --model runs/ez_points_sft
  forethought train cnn --resume runs/cnn
"""

ALGORITHM = Algorithm(
    name="cnn",
    summary="The baseline without words: a small network that sees and acts.",
    description=DESCRIPTION.strip(),
    config="forethought.algorithms.cnn.config:CNNConfig",
    train="forethought.algorithms.cnn.train:train_cnn",
    plan="forethought.algorithms.cnn.plan:plan_cnn",
    policy="forethought.algorithms.cnn.network:open_cnn",
    check="forethought.algorithms.cnn.plan:check_cnn",
)
