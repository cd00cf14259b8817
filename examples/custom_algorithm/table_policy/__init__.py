"""REINFORCE with a table: an algorithm that Forethought does not ship.

This file is read by every `forethought --help`, so it imports no torch.
"""

from forethought.algorithms.registry import Algorithm

DESCRIPTION = """\
REINFORCE with a table: one row of action probabilities per prompt, no language model.

For environments with a fixed list of actions whose prompts come back, such as the bandit.

Examples:
  forethought train table --environment.id Bandit --output runs/table
"""

ALGORITHM = Algorithm(
    name="table",
    summary="REINFORCE with a table of action probabilities.",
    description=DESCRIPTION.strip(),
    config="table_policy.config:TableConfig",
    train="table_policy.train:train_table",
    policy="table_policy.train:open_table",
)
