"""An environment of your own: one class, and every command of Forethought works on it.

For example:
    python examples/custom_environment.py
    forethought play  examples.custom_environment:Thermostat
    forethought train sft --environment.id examples.custom_environment:Thermostat
"""

import json
import random

from forethought.environments.check import check_environment
from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.types import Metric, Observation


class Thermostat:
    """Bring the room to 20 degrees within 8 steps: +1 when it is, -0.1 per step before."""

    actions = ("heat", "cool", "stop")
    ceiling = Ceiling(1.0, "exact: the room is never more than 6 degrees off")

    def reset(self, seed: int) -> Observation:
        self.degrees, self.steps, self.over = random.Random(seed).randint(14, 26), 0, False
        return self.observation()

    def observation(self) -> Observation:
        text = f"It is {self.degrees} degrees. Over: {self.over}."
        key = f"{self.degrees} {self.over}"
        return Observation(text, None, None, key, "Reach 20 degrees, then stop.", "Thermostat")

    def step(self, action: str) -> Transition:
        if self.over or self.steps >= 8:
            raise RuntimeError("the episode is over")
        self.steps += 1
        self.degrees += {"heat": 1, "cool": -1}.get(action, 0)
        self.over = action == "stop"
        reward = float(self.success()) if self.over else -0.1
        return Transition(reward, terminated=self.over, truncated=not self.over and self.steps >= 8)

    def legal_actions(self) -> tuple[str, ...]:
        return () if self.over or self.steps >= 8 else self.actions

    def expert(self) -> ExpertAction:
        action = "stop" if self.degrees == 20 else "heat" if self.degrees < 20 else "cool"
        thought = json.dumps(f"it is {self.degrees}, so I {action}")
        return ExpertAction(action, (("thoughts", thought),))

    def success(self) -> bool:
        return self.over and self.degrees == 20

    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("degrees_off", abs(self.degrees - 20)),)

    def close(self) -> None: ...


if __name__ == "__main__":
    check_environment(Thermostat)
    print("Thermostat keeps the contract")
