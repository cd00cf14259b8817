"""What `train cnn` will do and need, before it does it."""

from forethought.algorithms.cnn.config import CNNConfig
from forethought.algorithms.cnn.train import make_policy


def plan_cnn(config: CNNConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: a world or model that is not there or does not suit: as training would.
    """
    _, policy = make_policy(config)
    rollout, iterations = config.rollout, config.iterations
    parameters = sum(parameter.numel() for parameter in policy.module.parameters())
    return [
        "plan",
        f"steps       {iterations * rollout.steps_per_iteration:,} of the environment: "
        f"{iterations} iterations of {rollout.steps_per_iteration}, in {rollout.num_envs} at once",
        f"updates     {iterations * config.updates_per_iteration:,}: "
        f"{config.updates_per_iteration} per iteration, of {config.batch_size} steps each",
        f"model       {parameters:,} parameters, all of them trained",
    ]


def check_cnn(config: CNNConfig) -> None:
    """Refuses what can be refused before a run folder is touched.

    Raises:
        ForethoughtError: as `plan_cnn`.
    """
    make_policy(config)
