"""`check_environment` passes a good environment, and every kind of broken one fails it."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from forethought.environments.check import EnvironmentCheckError, check_environment
from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.types import Metric, Observation


class Countdown:
    """A good little environment: count down from the seed's number to zero."""

    def __init__(self) -> None:
        self.left = 0
        self.steps = 0
        self.is_over = True
        self.image = np.zeros((4, 4, 3), dtype=np.uint8)

    @property
    def actions(self) -> tuple[str, ...] | None:
        return ("down", "wait")

    @property
    def ceiling(self) -> Ceiling:
        return Ceiling(1.0, "exact: every episode can be finished")

    def reset(self, seed: int) -> Observation:
        self.left = random.Random(seed).randint(1, 9)
        self.steps = 0
        self.is_over = False
        return self.observation()

    def observation(self) -> Observation:
        return Observation(
            f"{self.left} left",
            np.full((4, 4, 3), self.left, dtype=np.uint8),
            None,
            str(self.left),
            "Reach zero.",
            "Countdown",
        )

    def step(self, action: str) -> Transition:
        if self.is_over:
            raise RuntimeError("over")
        self.left -= action == "down"
        self.steps += 1
        terminated = self.left == 0
        truncated = not terminated and self.steps >= 12
        self.is_over = terminated or truncated
        return Transition(float(terminated), terminated, truncated)

    def legal_actions(self) -> tuple[str, ...]:
        return () if self.is_over else ("down", "wait")

    def expert(self) -> ExpertAction:
        return ExpertAction("down", (("left", str(self.left)),))

    def success(self) -> bool:
        return self.left == 0

    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("left", float(self.left)),)

    def close(self) -> None:
        pass


def changed(observation: Observation, **values: Any) -> Observation:
    fields = {name: getattr(observation, name) for name in Observation.__dataclass_fields__}
    return Observation(**{**fields, **values})


clock = itertools.count()


class ForgetsItsSeed(Countdown):
    def reset(self, seed: int) -> Observation:
        return super().reset(next(clock))


class UsesGlobalRandomness(Countdown):
    def step(self, action: str) -> Transition:
        random.random()
        return super().step(action)


class UsesGlobalNumpy(Countdown):
    def step(self, action: str) -> Transition:
        np.random.rand()
        return super().step(action)


class KeyTicks(Countdown):
    def observation(self) -> Observation:
        return changed(super().observation(), state_key=str(next(clock)))


class KeyCountsSteps(Countdown):
    def observation(self) -> Observation:
        return changed(super().observation(), state_key=f"{self.left} {self.steps}")


class KeyIsConstant(Countdown):
    def observation(self) -> Observation:
        return changed(super().observation(), state_key="here")


class KeyIsEmpty(Countdown):
    def observation(self) -> Observation:
        return changed(super().observation(), state_key="")


class ShowsNothing(Countdown):
    def observation(self) -> Observation:
        return changed(super().observation(), text=None, image=None)


class FloatImage(Countdown):
    def observation(self) -> Observation:
        return changed(super().observation(), image=np.zeros((4, 4, 3)))


class GrayImage(Countdown):
    def observation(self) -> Observation:
        return changed(super().observation(), image=np.zeros((4, 4), dtype=np.uint8))


class WritesOnOldImages(Countdown):
    def observation(self) -> Observation:
        self.image[:] = self.left
        return changed(super().observation(), image=self.image)


class RejectsUnknownActions(Countdown):
    def step(self, action: str) -> Transition:
        if action not in ("down", "wait"):
            raise KeyError(action)
        return super().step(action)


class UnknownActionsAct(Countdown):
    def step(self, action: str) -> Transition:
        return super().step(action if action == "wait" else "down")


class PlaysOnAfterTheEnd(Countdown):
    def step(self, action: str) -> Transition:
        if self.is_over:
            return Transition(0.0, True, False)
        return super().step(action)


class EndsBothWays(Countdown):
    def step(self, action: str) -> Transition:
        transition = super().step(action)
        return transition._replace(truncated=transition.terminated or transition.truncated)


class NeverEnds(Countdown):
    def step(self, action: str) -> Transition:
        return Transition(0.0, False, False)


class PaysNotANumber(Countdown):
    def step(self, action: str) -> Transition:
        return super().step(action)._replace(reward=float("nan"))


class NumpyBooleans(Countdown):
    def success(self) -> bool:
        return np.bool_(self.left == 0)  # type: ignore[return-value]


class InfiniteMeasure(Countdown):
    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("left", float("inf")),)


class IllegalExpert(Countdown):
    def expert(self) -> ExpertAction:
        return ExpertAction("up", ())


class ExpertWritesNoJson(Countdown):
    def expert(self) -> ExpertAction:
        return ExpertAction("down", (("thoughts", "no quotation marks"),))


class ExpertPlays(Countdown):
    def expert(self) -> ExpertAction:
        self.left += 1
        return super().expert()


class NothingIsLegal(Countdown):
    def legal_actions(self) -> tuple[str, ...]:
        return ()


class LegalButUnknown(Countdown):
    def legal_actions(self) -> tuple[str, ...]:
        return ("down", "up")


class CeilingAboveOne(Countdown):
    @property
    def ceiling(self) -> Ceiling:
        return Ceiling(1.2, "exact: too good")


class CeilingFromNowhere(Countdown):
    @property
    def ceiling(self) -> Ceiling:
        return Ceiling(0.5, "I think so")


class SameActionTwice(Countdown):
    @property
    def actions(self) -> tuple[str, ...] | None:
        return ("down", "down", "wait")


BREACHES: dict[Callable[[], Countdown], str] = {
    ForgetsItsSeed: "replayed",
    UsesGlobalRandomness: "the state of `random`",
    UsesGlobalNumpy: "the state of `random` or `numpy.random`",
    KeyTicks: "state_key",
    KeyCountsSteps: "the unknown action",
    KeyIsConstant: "with key 'here'",
    KeyIsEmpty: "state_key ''",
    ShowsNothing: "neither text nor image",
    FloatImage: "float64",
    GrayImage: r"uint8 \[4, 4\]",
    WritesOnOldImages: "changed after it had been given",
    RejectsUnknownActions: "raised KeyError",
    UnknownActionsAct: "the unknown action",
    PlaysOnAfterTheEnd: "step after the end did something",
    EndsBothWays: "not both True",
    NeverEnds: "goes on after",
    PaysNotANumber: "reward is nan",
    NumpyBooleans: "success",
    InfiniteMeasure: "metrics",
    IllegalExpert: "the expert's 'up'",
    ExpertWritesNoJson: "expected JSON text",
    ExpertPlays: "an observation has",
    NothingIsLegal: "no legal action",
    LegalButUnknown: r"legal actions \['up'\]",
    CeilingAboveOne: "a ceiling of 1.2",
    CeilingFromNowhere: "a ceiling's method",
    SameActionTwice: "different strings",
}


def test_a_good_environment_passes() -> None:
    check_environment(Countdown)
    check_environment(Countdown(), episodes=3, seed=100)


class OpenText(Countdown):
    @property
    def actions(self) -> tuple[str, ...] | None:
        return None


def test_an_environment_of_open_text_passes() -> None:
    check_environment(OpenText)


@pytest.mark.parametrize("environment", BREACHES, ids=lambda environment: environment.__name__)
@pytest.mark.parametrize("as_factory", [True, False])
def test_a_broken_environment_is_caught(
    environment: Callable[[], Countdown], as_factory: bool
) -> None:
    state = random.getstate(), np.random.get_state()
    with pytest.raises(EnvironmentCheckError, match=BREACHES[environment]):
        check_environment(environment if as_factory else environment())
    random.setstate(state[0])
    np.random.set_state(state[1])
