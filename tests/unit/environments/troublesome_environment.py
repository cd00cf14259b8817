"""A counter whose commands can crash or hang it: what a runner must survive."""

import os
import time

from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.errors import ConfigError
from forethought.types import Metric, Observation


class FaultyEnvironment:
    """ "add" counts; the other actions make trouble. The count starts at the seed."""

    actions = ("add", "raise", "exit", "hang", "end")
    ceiling = Ceiling(1.0, "exact: by counting")

    def __init__(self, mood: str = "willing") -> None:
        if mood == "unwilling":
            raise ConfigError("mood is 'unwilling' — expected willing")
        if mood == "broken":
            raise KeyError("a bug")
        self._count = 0
        self._is_over = True

    def reset(self, seed: int) -> Observation:
        self._count = seed
        self._is_over = False
        return self.observation()

    def observation(self) -> Observation:
        return Observation(
            text=f"{self._count} in process {os.getpid()}",
            image=None,
            admissible_actions=None,
            state_key=str(self._count),
            goal="Count.",
            task_type="Count",
        )

    def step(self, action: str) -> Transition:
        if self._is_over:
            raise RuntimeError("over")
        if action == "raise":
            raise ValueError("as asked\nsecond line")
        if action == "exit":
            os._exit(3)
        if action == "hang":
            time.sleep(3600)
        self._is_over = action == "end"
        self._count += 1
        return Transition(1.0, self._is_over, False)

    def legal_actions(self) -> tuple[str, ...]:
        return self.actions

    def expert(self) -> ExpertAction:
        return ExpertAction("add", ())

    def success(self) -> bool:
        return self._is_over

    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("count", float(self._count)),)

    def close(self) -> None:
        pass
