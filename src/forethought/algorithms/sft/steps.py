"""The steps that SFT learns from: stored ones, all, of the best episodes or by return bin; the
expert's own, with action noise (DART) or without; and the expert's in the states of others
(DAgger). How many there will be (`--dry-run`)."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from forethought.algorithms.sft.config import SFTConfig
from forethought.configs.parts import ResponseFormat
from forethought.environments.contract import Environment, ExpertAction, Past, Prompter
from forethought.environments.slots import facts_in
from forethought.errors import ConfigError
from forethought.offline.dataset import require_own, stored, stored_earned
from forethought.prompts.history import past_step, with_history
from forethought.prompts.prompters import ask_for_return_bins
from forethought.prompts.responses import asks_for_thoughts, strict_format, write_response
from forethought.rollouts.scripted import Respond, actions_to_try, expert_response, written
from forethought.rollouts.store import read_shards
from forethought.rollouts.task import Task
from forethought.targets.returns import best_episodes, return_bins
from forethought.targets.reward_map import returns_to_go
from forethought.training.plan import (
    SAMPLE_STEPS,
    check_language,
    first_steps,
    image_memory,
    lengths_of,
    open_outline,
    plan_lines,
)
from forethought.training.start import demonstrations, expert_episodes
from forethought.types import Observation, Step, Trajectory


def stored_steps(config: SFTConfig, path: Path) -> Iterator[Step]:
    """The steps to learn from, with the prompts to learn them by.

    Args:
        path: of a shard, or of a folder of shards.

    Raises:
        ConfigError: none with a return, though returns were asked for.
        StorageError: a shard is refused.
    """
    levels = config.prompt.return_bins
    if config.filter_top_fraction == 1 and levels == 0:
        yield from chain.from_iterable(trajectory.steps for trajectory in read_shards(path))
        return
    returns = [returns_to_go(earned, gamma=1.0) for earned in stored_earned(path)]
    if not returns:
        raise ConfigError(f"data: {path} holds no episode with a step")
    starts = [float(returns_T[0]) for returns_T in returns]
    kept = best_episodes(starts, fraction=config.filter_top_fraction)
    told = return_bins([returns[number] for number in kept], levels=levels) if levels else []
    places = {number: place for place, number in enumerate(kept)}
    for number, trajectory in enumerate(stored(path)):
        if number in places and levels:
            yield from _asked(trajectory, told[places[number]], levels)
        elif number in places:
            yield from trajectory.steps


def _asked(trajectory: Trajectory, told: tuple[int, ...], levels: int) -> Iterator[Step]:
    for number, step in enumerate(trajectory.steps, start=1):
        messages = ask_for_return_bins(step.prompt.messages, told[:number], levels)
        yield replace(step, prompt=replace(step.prompt, messages=messages))


def demonstrated_steps(task: Task, config: SFTConfig) -> Iterator[tuple[Step, bool]]:
    """The expert's steps, without end, and whether to learn from them: not where it slips."""
    task.require_expert()
    expert = NoisyExpert(config.action_noise, config.prompt.format, seed=config.seed)
    for trajectory in expert_episodes(task, config, expert):
        slips = expert.end_episode()
        yield from zip(trajectory.steps, (not slip for slip in slips), strict=False)


def corrected_steps(task: Task, config: SFTConfig, played: Path) -> Iterator[Step]:
    """The expert's responses in the states of stored episodes.

    Raises:
        ConfigError: they were not played in this environment.
        StorageError: nothing is stored there, or it is damaged.
    """
    task.require_expert()
    environment, respond = task.factory(), expert_response(config.prompt.format)
    try:
        for trajectory in read_shards(played):
            yield from corrected(trajectory, environment, task.prompter, respond)
    finally:
        environment.close()


def plan_sft(config: SFTConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    task, encoder, model = open_outline(config)
    if config.data is None:
        count = config.expert_steps + _dagger_steps(config)
        sample = first_steps(demonstrations(task, config))
    else:
        steps = stored_steps(config, Path(config.data))
        sample = [step for step in steps if step.action.is_valid]
        count = len(sample)
        if not sample:
            raise ConfigError(f"data: {config.data} holds no step with a valid response")
    lengths = lengths_of(sample[:SAMPLE_STEPS], encoder)
    tokens, updates = config.epochs * count * lengths.tokens, config.updates(count)
    work = [
        f"updates     {updates:,} of {config.batch_size} responses each, from {count:,} steps",
        f"tokens      at most {tokens:,.0f} trained on (per step {lengths.prompt:.0f} of prompt "
        f"and {lengths.completion:.0f} of completion)",
    ]
    return plan_lines(
        config,
        model,
        lengths,
        work,
        image_memory(lengths.packed, count),
        lambda speed: f"all {updates:,} about {updates * speed.update / 60:.2g} minutes",
    )


def check_sft(config: SFTConfig) -> None:
    """Refuses what can be refused before a run folder is touched.

    Raises:
        ForethoughtError: as training would.
    """
    task = check_language(config)
    if config.dagger_data is not None:
        require_own("dagger_data", config.dagger_data, task)


def _dagger_steps(config: SFTConfig) -> int:
    """Steps that may be corrected: fewer where states are met again."""
    if config.dagger_data is None:
        return 0
    return sum(len(trajectory.steps) for trajectory in read_shards(Path(config.dagger_data)))


class NoisyExpert:
    """Acts as the environment's expert, but for a share of the steps, so that one learns how an
    episode goes on after a mistake.

    DART (Laskey et al., 2017), with noise that does not depend on the state. In these steps it
    tries, uniformly, any action that the episode has offered so far, so that some are not
    possible any more.
    """

    def __init__(self, share: float, response_format: ResponseFormat, *, seed: int) -> None:
        self._share = share
        self._expert = expert_response(response_format)
        self._randomness = np.random.Generator(np.random.Philox(key=seed))
        self._offered: dict[str, None] = {}
        self._slips: list[bool] = []

    def __call__(self, environment: Environment, observation: Observation) -> str:
        """The text of the next answer."""
        self._offered.update(dict.fromkeys(actions_to_try(environment, observation)))
        is_noise = bool(self._randomness.random() < self._share)
        text = self._slip() if is_noise else self._expert(environment, observation)
        self._slips.append(is_noise)  # of an answer; where the expert fails, there is none
        return text

    def end_episode(self) -> list[bool]:
        """Which of the episode's answers were slips; the next answer begins another one."""
        slips, self._slips, self._offered = self._slips, [], {}
        return slips

    def _slip(self) -> str:
        offered = tuple(self._offered)
        action = offered[int(self._randomness.integers(len(offered)))]
        return write_response(ExpertAction(action, ()), "action_only")


def corrected(
    played: Trajectory, environment: Environment, prompter: Prompter, respond: Respond
) -> Iterator[Step]:
    """Plays an episode again, and asks the expert in every state that it passes: also in those
    that only the policy's own mistakes lead to (DAgger: Ross et al., 2011).

    Args:
        played: by whomever, from its beginning.
        respond: the expert's.

    Returns:
        The steps with the expert's answers in place of the player's; a state that the episode
        passes several times, as in a loop, gives one. What followed is the player's doing, so
        such steps are for SFT alone.

    Raises:
        ConfigError: the episode takes another course here: it was played in another environment,
            with other options or by other prompts.
    """
    if not played.steps:
        return
    told = with_history(prompter)
    observation = environment.reset(played.seed)
    past: list[Past] = []
    met: set[str] = set()
    for number, step in enumerate(played.steps):
        key = told.state_key(observation, past)
        if played.first_step or key != step.state_key:
            raise ConfigError(
                f"corrections: the episode of seed {played.seed} is not the one that is played "
                f"here, from step {number} on — expected whole episodes of this environment, "
                "with these options and prompts"
            )
        choices = observation.admissible_actions or environment.actions
        if key not in met:
            met.add(key)
            completion = written(respond(environment, observation))
            fields = told.response_fields
            thoughts = completion.text if asks_for_thoughts(fields) else None
            yield replace(
                step,
                completion=completion,
                action=told.parse(completion, choices),
                thought_facts=facts_in(environment, thoughts),
                strict_format=strict_format(completion.text, fields),
            )
        environment.step(step.action.action)
        past.append(past_step(observation, step.action.action, choices))
        observation = environment.observation()
