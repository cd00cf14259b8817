"""What a collector remembers of each slot, and which episode a slot plays next."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from forethought.environments.contract import Past, Transition
from forethought.environments.slots import Act, Observed
from forethought.generation.contract import GenerationResult
from forethought.prompts.responses import asks_for_thoughts, strict_format
from forethought.types import (
    EnvironmentFailure,
    Observation,
    ParsedAction,
    Prompt,
    Step,
    Trajectory,
    progress_in,
)


class Start(NamedTuple):
    """Where a slot is to begin: an episode, or a place in the middle of one."""

    number: int
    """Number of the episode within its split; what its answers are drawn from."""
    seed: int | None = None
    """Seed of the environment; None: the one that belongs to the number."""
    actions: tuple[str, ...] = ()
    """To be repeated before the policy is asked."""


class Cursor(NamedTuple):
    """Where a slot stands in its episode: enough to get there again by replay."""

    episode: int
    actions: tuple[str, ...]
    total_reward: float


class Episode(NamedTuple):
    """An episode that came to its end, over all the collections that it spans."""

    number: int
    """Within its split."""
    total_reward: float
    steps: int
    success: bool


class Collected(NamedTuple):
    trajectories: list[Trajectory]
    """By slot, each slot's in time order; the last may be unfinished."""
    episodes: list[Episode]
    """Those that ended, in the same order."""


class Asked(NamedTuple):
    """An answer that the environment is executing."""

    prompt: Prompt
    result: GenerationResult
    action: ParsedAction
    state_key: str
    fields: tuple[str, ...]
    """Fields of JSON that the prompt asks for, `action` last; empty where it asks for no JSON."""

    @property
    def act(self) -> Act:
        """What the environment is to execute; the whole response where it was to hold thoughts."""
        text = self.result.completion.text
        return Act(self.action.action, text if asks_for_thoughts(self.fields) else None)

    @property
    def strict_format(self) -> bool | None:
        """Whether the response has exactly these fields."""
        return strict_format(self.result.completion.text, self.fields)


@dataclass
class Slot:
    """One environment and the episode in it."""

    index: int
    episode: int
    seed: int = 0
    actions: list[str] = field(default_factory=list[str])
    """Actions of this episode, so far."""
    past: list[Past] = field(default_factory=list[Past])
    """The same steps, as prompts tell of them."""
    ahead: list[str] = field(default_factory=list[str])
    """Actions that lead to where the slot is to begin, and are still to be repeated."""
    total_reward: float = 0.0
    observation: Observation | None = None
    """What the agent sees now; None between episodes."""
    legal_actions: tuple[str, ...] = ()
    """What is open now, whether the observation lists it or not."""
    prompt: Prompt | None = None
    asked: Asked | None = None
    steps: list[Step] = field(default_factory=list[Step])
    taken: int = 0
    """Steps in this collection."""
    was_retried: bool = False
    is_replaying: bool = False
    failures: int = 0
    """Episodes given up since the last one that ended."""
    trajectories: list[Trajectory] = field(default_factory=list[Trajectory])
    numbers: list[int] = field(default_factory=list[int])
    """Numbers of the trajectories: which start each comes from."""
    episodes: list[Episode] = field(default_factory=list[Episode])

    def see(self, reply: Observed) -> None:
        """What the agent stands before now."""
        self.observation, self.legal_actions = reply.observation, reply.legal_actions


class Plan(Protocol):
    """What a slot plays next, and how far."""

    def next_start(self, slot: Slot) -> Start | None:
        """Where this slot is to begin; None: it has no more to do."""
        ...

    def is_far_enough(self, slot: Slot) -> bool:
        """Whether what this slot plays is left here, before its end, for the next start."""
        ...

    def is_enough(self, slot: Slot) -> bool:
        """Whether this slot has taken all its steps."""
        ...


@dataclass(frozen=True)
class FixedSteps:
    """So many steps per slot; slot i of n plays episodes i, i + n, i + 2n, …"""

    steps: int
    slots: int

    def next_start(self, slot: Slot) -> Start:
        return Start(slot.episode + self.slots)

    def is_far_enough(self, slot: Slot) -> bool:
        return False

    def is_enough(self, slot: Slot) -> bool:
        return slot.taken >= self.steps


@dataclass(frozen=True)
class OneEpisode:
    """One whole episode per slot; slot i of n plays i, i + n, i + 2n, … one collection each."""

    slots: int

    def next_start(self, slot: Slot) -> Start | None:
        return None if slot.trajectories else Start(slot.episode + self.slots)

    def is_far_enough(self, slot: Slot) -> bool:
        return False

    def is_enough(self, slot: Slot) -> bool:
        return False


@dataclass(frozen=True)
class FromStarts:
    """From each of these starts on, by whichever slot is free."""

    remaining: list[Start]
    horizon: int | None = None
    """Steps from each start; None: to the end of the episode."""

    def next_start(self, slot: Slot) -> Start | None:
        return self.remaining.pop(0) if self.remaining else None

    def is_far_enough(self, slot: Slot) -> bool:
        return self.horizon is not None and len(slot.steps) >= self.horizon

    def is_enough(self, slot: Slot) -> bool:
        return False


def taken_step(asked: Asked, reply: Observed, what: Transition, policy_version: int) -> Step:
    """An answer that the environment has executed."""
    return Step(
        prompt=asked.prompt,
        completion=asked.result.completion,
        action=asked.action,
        reward=what.reward,
        terminated=what.terminated,
        truncated=what.truncated,
        value=asked.result.value,
        policy_version=policy_version,
        state_key=asked.state_key,
        duration_s=reply.duration_s,
        progress=progress_in(reply.metrics),
        thought_facts=reply.thought_facts,
        strict_format=asked.strict_format,
    )


def played(slot: Slot, reply: Observed, environment_id: str, *, has_ended: bool) -> Trajectory:
    """The slot's steps of this collection, up to the reply."""
    return Trajectory(
        environment_id=environment_id,
        seed=slot.seed,
        task_type=reply.observation.task_type,
        first_step=len(slot.actions) - len(slot.steps),
        steps=tuple(slot.steps),
        bootstrap_value=None,
        success=reply.success if has_ended else False,
        metrics=reply.metrics if has_ended else (),
    )


def given_up(slot: Slot, environment_id: str, failure: EnvironmentFailure) -> Trajectory:
    """The episode of a slot, which the environment did not bring to an end."""
    task_type = "" if slot.observation is None else slot.observation.task_type
    return failed_episode(environment_id, slot.seed, failure, task_type=task_type)


def failed_episode(
    environment_id: str, seed: int, failure: EnvironmentFailure, *, task_type: str = ""
) -> Trajectory:
    """An episode that the environment did not bring to an end: no steps, no reward of zero."""
    return Trajectory(
        environment_id=environment_id,
        seed=seed,
        task_type=task_type,
        first_step=0,
        steps=(),
        bootstrap_value=None,
        success=False,
        metrics=(),
        failure=failure,
    )
