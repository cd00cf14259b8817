"""The grid of crossing roads as a test of offline learning.

Three of four go straight on into the pit; from the west nobody reached the goal. Imitation ends
in the pit. What is needed is the value of the turn, learned from those who came from the north,
at a state that both share; its reward comes three steps behind it.
"""

from pathlib import Path

from forethought.configs.parts import EnvironmentConfig, SamplingConfig
from forethought.evaluation.evaluate import EvaluationSettings, play_policy
from forethought.generation.contract import Policy
from forethought.rollouts.task import open_task
from forethought.runs.checkpoints import list_checkpoints
from tests.unit.algorithms.conftest import ACTION_ONLY, CROSSING

FROM_WEST = EnvironmentConfig(CROSSING.id, options=("start=west",))
STITCHED, MISSED = 0.9, 0.1
"""Success from the west of who takes the turn, and of who does not."""


def newest_model(run: Path) -> Path:
    return list_checkpoints(run / "checkpoints")[-1] / "model"


def success_from_west(policy: Policy) -> float:
    """Where the most likely token is taken."""
    task = open_task(FROM_WEST, ACTION_ONLY, default_image_size=None)
    settings = EvaluationSettings(
        episodes=4, sampling=SamplingConfig(temperature=0.0, max_new_tokens=12), num_envs=4
    )
    played = play_policy(policy, task, settings)
    return sum(one.success for one in played) / len(played)
