"""What is typed in these tests, and what comes back."""

from collections.abc import Callable
from typing import NamedTuple

SFT = (
    "train sft --environment.id Bandit --expert-steps 64 --batch-size 16 "
    "--checkpoint-every 2 --compute.threads 1"
)
"""Four updates of the tiny model, with a checkpoint after the second and the fourth."""
PPO = (
    "train ppo --environment.id Bandit --total-steps 48 --rollout.num-envs 8 "
    "--rollout.steps-per-iteration 16 --batch-size 16 --epochs 1 --rollout.max-new-tokens 12 "
    "--checkpoint-every 1 --compute.threads 1"
)
"""Three iterations of one update, each with a checkpoint."""
VALUES = (
    "--environment.id Bandit --epochs 2 --batch-size 8 --polyak-tau 0.5 --acting.beta 200 "
    "--optimizer.learning-rate 3e-3 --compute.threads 1"
)
"""Of `train q-sft` and `train ilql`: twelve updates, behind which values weigh much."""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What stderr holds beside progress bars."""
        shown = [line.rpartition("\r")[2] for line in self.err.splitlines()]
        return [line for line in shown if line and "%|" not in line]


Type = Callable[[str], Outcome]
"""Types a command."""
