"""Three steps up: an environment that measures its progress, for those that compare ways to go
on."""

from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.types import Metric, Observation

TOP, LIMIT = 3, 6


class Stairs:
    """ "up" and "down" a stair of three; an episode ends at the top, or after six steps."""

    actions: tuple[str, ...] = ("up", "down")
    ceiling = Ceiling(1.0, "exact: up, up, up")

    def __init__(self) -> None:
        self._height = self._steps = 0

    def reset(self, seed: int) -> Observation:
        del seed
        self._height = self._steps = 0
        return self.observation()

    def observation(self) -> Observation:
        text = f"stair {self._height}"
        return Observation(text, None, None, f"{self._height} {self._steps}", "Go up.", "Stairs")

    def step(self, action: str) -> Transition:
        self._steps += 1
        if action == "up":
            self._height += 1
        if action == "down":
            self._height = max(0, self._height - 1)
        return Transition(0.0, self.success(), not self.success() and self._steps == LIMIT)

    def legal_actions(self) -> tuple[str, ...]:
        return self.actions

    def expert(self) -> ExpertAction:
        return ExpertAction("up", (("thoughts", '"higher"'),))

    def success(self) -> bool:
        return self._height == TOP

    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("progress", self._height / TOP),)

    def close(self) -> None:
        pass
