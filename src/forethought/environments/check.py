"""Whether an environment keeps the contract. Run it on your own before training on it.

Gymnasium's `check_env` looks at spaces; this looks at the text side: replay, keys,
odd strings, ends, experts, and randomness that does not come from the seed.
"""

import hashlib
import random
from typing import Any, NamedTuple, cast

import numpy as np

from forethought.environments.check_values import (
    EnvironmentCheckError,
    check_constants,
    check_expert_action,
    check_legal,
    check_observation,
    check_outcome,
    checked_transition,
    require,
    require_same,
)
from forethought.environments.contract import Environment, ExpertAction, Transition, WithExpert
from forethought.environments.slots import Factory
from forethought.errors import EnvironmentUnusableError, ForethoughtError
from forethought.types import Image, Metric, Observation

__all__ = ["EnvironmentCheckError", "check_environment"]

ODD_STRINGS = (
    "",
    " ",
    "no such action",
    '"',
    "\n\t\r\0",
    "'; DROP TABLE actions; --",
    "<script>alert(1)</script>",
    "{'action': {'action': {}}}",
    "9**9**9**9",
    "__import__('os').abort()",
    "\ud800",
    "\u202eهلا 你好 🂡",
    "(" * 10_000,
    "x" * 100_000,
)
"""Texts that models and mischief write; none may stop an environment."""

ODD_SHARE = 0.15
"""Share of the steps at which an odd string is tried."""

MAX_STEPS = 2_000
"""Steps after which an episode must have ended."""


class Moment(NamedTuple):
    """All that can be seen of an environment between two actions."""

    observation: Observation
    legal_actions: tuple[str, ...]
    expert_action: ExpertAction | None
    success: bool
    metrics: tuple[Metric, ...]
    image_digest: bytes
    """A digest of the observation's image, taken at the time."""


class Record(NamedTuple):
    """One episode: `moments` has one more entry than the other two."""

    actions: list[str]
    transitions: list[Transition]
    moments: list[Moment]


def check_environment(
    environment_or_factory: Environment | Factory, *, episodes: int = 10, seed: int = 0
) -> None:
    """Plays episodes, legal and otherwise, and replays each.

    Args:
        environment_or_factory: an instance, or what builds one; with the latter the
            replays also run on a second instance, which must agree with the first.
        episodes: how many to play; the seeds are `seed`, `seed` + 1, …

    Raises:
        EnvironmentCheckError: the contract is broken.
    """
    is_class = isinstance(environment_or_factory, type)  # it has `reset`, and builds environments
    if hasattr(environment_or_factory, "reset") and not is_class:
        environment = twin = cast(Environment, environment_or_factory)
    else:
        factory = cast(Factory, environment_or_factory)
        environment, twin = factory(), factory()
    global_state = _global_random_state()
    check_constants(environment)
    for number in range(seed, seed + episodes):
        record = _play(environment, number)
        _check_keys(record, number)
        _check_replay(twin, number, record)
    require(
        _global_random_state() == global_state,
        "the state of `random` or `numpy.random` changed",
        "all randomness from the seed given to reset",
    )
    if twin is not environment:
        environment.close()
        twin.close()


def _play(environment: Environment, seed: int) -> Record:
    """Plays one episode with actions of every kind, checking each step."""
    choices = random.Random(seed)
    first = environment.reset(seed)
    moment = _look(environment)
    require_same("reset's observation", first, "observation()'s", moment.observation)
    record = Record([], [], [moment])
    for _ in range(MAX_STEPS):
        action = _choose(environment, moment, choices)
        transition = _act(environment, action)
        was, moment = moment, _look(environment, is_over=transition[1] or transition[2])
        checked_transition(transition)
        if environment.actions is not None and action not in environment.actions:
            require_same(
                f"the state before the unknown action {action[:40]!r}",
                was.observation,
                "the state after it",
                moment.observation,
            )
        record.actions.append(action)
        record.transitions.append(transition)
        record.moments.append(moment)
        if transition.terminated or transition.truncated:
            _check_end(environment)
            _check_images(record)
            return record
    raise EnvironmentCheckError(
        f"an episode (seed {seed}) that goes on after {MAX_STEPS} steps, expected an end"
    )


def _choose(environment: Environment, moment: Moment, choices: random.Random) -> str:
    if choices.random() < ODD_SHARE:
        return choices.choice(ODD_STRINGS)
    if moment.expert_action is not None and choices.random() < 0.3:
        return moment.expert_action.action
    if environment.actions is not None and choices.random() < 0.3:
        return choices.choice(environment.actions)
    return choices.choice(moment.legal_actions)


def _act(environment: Environment, action: str) -> Transition:
    try:
        return environment.step(action)
    except ForethoughtError:
        raise  # It names the call already.
    except Exception as error:
        raise EnvironmentCheckError(
            f"step({action[:40]!r}) raised {type(error).__name__}: {error} — expected a "
            "transition, for any string"
        ) from error


def _look(environment: Environment, *, is_over: bool = False) -> Moment:
    """Reads everything, and checks that reading is free of consequences."""
    observation = environment.observation()
    check_observation(observation)
    legal = environment.legal_actions()
    check_legal(environment, legal, is_over)
    expert_action = None
    if isinstance(environment, WithExpert) and not is_over:
        expert_action = environment.expert()
    if expert_action is not None:
        check_expert_action(expert_action, legal)
    success, metrics = environment.success(), environment.metrics()
    check_outcome(success, metrics)
    require_same(
        "an observation", observation, "the next without an action", environment.observation()
    )
    image_digest = _digest(observation.image)
    return Moment(observation, legal, expert_action, success, metrics, image_digest)


def _check_end(environment: Environment) -> None:
    action = environment.actions[0] if environment.actions else "anything"
    try:
        environment.step(action)
    except RuntimeError:
        return
    except Exception as error:
        raise EnvironmentCheckError(
            f"step after the end raised {type(error).__name__}, expected RuntimeError"
        ) from error
    raise EnvironmentCheckError("step after the end did something, expected RuntimeError")


def _check_images(record: Record) -> None:
    """An image once given stays as it is."""
    for moment in record.moments:
        require(
            _digest(moment.observation.image) == moment.image_digest,
            "an image that changed after it had been given",
            "a new array, or one that is never written again",
        )


def _check_keys(record: Record, seed: int) -> None:
    """Within an episode, one key means one observation."""
    seen: dict[str, Observation] = {}
    for moment in record.moments:
        observation = moment.observation
        known = seen.setdefault(observation.state_key, observation)
        require_same(
            f"seed {seed}: one observation with key {observation.state_key!r}",
            known,
            "another with the same key",
            observation,
        )


def _check_replay(environment: Environment, seed: int, record: Record) -> None:
    """The same seed and actions lead through the same moments."""
    environment.reset(seed)
    for step, moment in enumerate(record.moments):
        if step > 0:
            transition = _act(environment, record.actions[step - 1])
            require(
                transition == record.transitions[step - 1],
                f"seed {seed}, step {step}, replayed: {transition}",
                f"as at first: {record.transitions[step - 1]}",
            )
        is_over = step == len(record.actions)
        again = _look(environment, is_over=is_over)
        where = f"seed {seed}, after {step} steps"
        require_same(f"{where}, replayed,", again.observation, "at first", moment.observation)
        require(
            again[1:] == moment[1:],
            f"{where}, replayed, legal actions, expert, success and metrics {again[1:]}",
            f"as at first: {moment[1:]}",
        )


def _digest(image: Image | None) -> bytes:
    return b"" if image is None else hashlib.sha256(image.tobytes()).digest()


def _global_random_state() -> tuple[Any, ...]:
    """State of the two generators that an environment must not touch, comparable with ==."""
    name, keys, *rest = cast(tuple[Any, ...], np.random.get_state(legacy=True))
    return random.getstate(), name, keys.tobytes(), *rest


EPISODES = 2
"""Played with actions of every kind, and replayed on a second copy."""


def prove(name: str, factory: Factory) -> str:
    """Plays some episodes and replays them: a run resumes, and survives a crash, by replay.

    Returns:
        What was found, in one line.

    Raises:
        EnvironmentUnusableError: the environment breaks the contract; the message says how.
    """
    try:
        check_environment(factory, episodes=EPISODES)
    except EnvironmentCheckError as error:
        raise EnvironmentUnusableError(
            f"{name} cannot be trained on: {error} — everything must follow from the seed of reset "
            "and the actions"
        ) from None
    environment = factory()
    try:
        first, second = (environment.reset(seed).state_key for seed in (0, 1))
        warning: str = getattr(environment, "state_key_warning", "")
    finally:
        environment.close()
    seeds = "different seeds start differently" if first != second else "all seeds start alike"
    found = f"{EPISODES} episodes replayed on a second copy, step by step equal; {seeds}"
    return f"{name}: {found}; {warning}" if warning else f"{name}: {found}"
