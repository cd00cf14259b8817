"""The baseline without words: PPO of a small network."""

from forethought.algorithms.registry import Algorithm

DESCRIPTION = """\
A small network that sees and acts, and says nothing: the baseline without words.

For environments with an image and a fixed list of actions. Its convolutions are randomly
initialized; --model names a model whose vision tower sees for it instead.

Examples:
  forethought train cnn --environment.id NumberLine --output runs/cnn
  forethought train cnn --config examples/cnn_baseline/configs/number_line.yaml
  forethought train cnn --resume runs/cnn
"""

ALGORITHM = Algorithm(
    name="cnn",
    summary="The baseline without words: a small network that sees and acts.",
    description=DESCRIPTION.strip(),
    config="cnn_baseline.config:CNNConfig",
    train="cnn_baseline.train:train_cnn",
    plan="cnn_baseline.train:plan_cnn",
    policy="cnn_baseline.network:open_cnn",
    check="cnn_baseline.train:check_cnn",
)
