"""Environment steps per second on one core, beside Gymnasium's own vector loop.

Both sides play as many instances of the same class, at random, and get the image with
every step. Ours does what a rollout does: commands to a runner, episodes by their seed,
replies with observation, legal actions and success.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from benchmarks.speed.contract import BenchmarkResult, Pair, compare, side_by_side
from forethought.environments import find_environment, make_environment
from forethought.environments.contract import Environment
from forethought.environments.vector import Act, Failed, InProcessRunner, Reset
from forethought.errors import MissingDependencyError

GAMES = ("NumberLine", "EZPoints", "Points24", "Blackjack")
IMAGE_SIZES = (64, 300)
SLOTS = 16
PAIRS = 5
SECONDS = 0.3
"""Of one measurement; there are two in a pair."""

_SHOPPERS = 50
"""Episodes of WebShop that are played again and again."""

_PICKS = 8
"""Of the robot."""

Round = Callable[[], int]
"""Takes some steps and says how many."""


def measure_environments(
    *, pairs: int = PAIRS, seconds: float = SECONDS
) -> Iterator[BenchmarkResult]:
    """Every card game with small and with large images; WebShop, with its searches cached; the
    robot, where it can be drawn."""
    for game in GAMES:
        for size in IMAGE_SIZES:
            with InProcessRunner(partial(make_environment, game, image_size=size), SLOTS) as runner:
                vector = _baseline(game, size)
                try:
                    rounds = _our_round(runner), _baseline_round(vector)
                    yield compare(
                        f"environments/{game}/{size}",
                        "steps/s",
                        race(*rounds, pairs=pairs, seconds=seconds),
                    )
                finally:
                    vector.close()
    yield _measure_alone("WebShop", make_environment("WebShop"), _SHOPPERS, seconds)
    with suppress(MissingDependencyError):  # No MuJoCo, or nothing that draws.
        robot = make_environment("Manipulation", image_size=48)
        yield _measure_alone("Manipulation/48", robot, _PICKS, seconds)


def _measure_alone(
    name: str, environment: Environment, episodes: int, seconds: float
) -> BenchmarkResult:
    """Random legal actions; there is no other side to it. What is cached is cached before."""

    def play() -> int:
        random, steps = np.random.default_rng(0), 0
        for seed in range(episodes):
            environment.reset(seed)
            while actions := environment.legal_actions():
                environment.step(actions[random.integers(len(actions))])
                environment.observation()
                steps += 1
        return steps

    play()
    return BenchmarkResult(
        f"environments/{name}", _steps_per_s(play, seconds), "steps/s", baseline=None, ratio=None
    )


def race(ours: Round, baseline: Round, *, pairs: int, seconds: float) -> list[Pair]:
    """Steps per second of both, in turn."""
    for warm_up in (ours, baseline):
        _steps_per_s(warm_up, seconds / 4)
    sides = partial(_steps_per_s, ours, seconds), partial(_steps_per_s, baseline, seconds)
    return [side_by_side(*sides) for _ in range(pairs)]


def _steps_per_s(play: Round, seconds: float) -> float:
    steps, started = 0, perf_counter()
    while (elapsed := perf_counter() - started) < seconds or not steps:
        steps += play()
    return steps / elapsed


def _our_round(runner: InProcessRunner) -> Round:
    """One step in every slot; where an episode ended, the next one begins."""
    random, seeds = np.random.default_rng(0), count()
    actions = runner.actions
    assert actions is not None
    for slot in range(runner.slots):
        runner.send(slot, Reset(next(seeds)))
    runner.receive()

    def play() -> int:
        drawn = random.integers(len(actions), size=runner.slots)
        for slot in range(runner.slots):
            runner.send(slot, Act(actions[int(drawn[slot])]))
        ended = False
        for reply in runner.receive():
            if isinstance(reply, Failed):
                raise RuntimeError(reply.message)
            assert reply.transition is not None
            if reply.transition.terminated or reply.transition.truncated:
                runner.send(reply.slot, Reset(next(seeds)))
                ended = True
        if ended:
            runner.receive()
        return runner.slots

    return play


def _baseline(game: str, size: int) -> SyncVectorEnv:
    def make() -> gymnasium.Env[Any, Any]:
        return gymnasium.make(
            find_environment(game).id, image_size=size, disable_env_checker=True
        ).unwrapped

    # Ended episodes begin anew within the same step, so that every step is one of the game.
    return SyncVectorEnv([make] * SLOTS, autoreset_mode=AutoresetMode.SAME_STEP)


def _baseline_round(vector: SyncVectorEnv) -> Round:
    random = np.random.default_rng(0)
    vector.reset(seed=0)
    actions = int(vector.single_action_space.n)  # pyright: ignore[reportAttributeAccessIssue]

    def play() -> int:
        vector.step(random.integers(actions, size=vector.num_envs))
        return vector.num_envs

    return play
