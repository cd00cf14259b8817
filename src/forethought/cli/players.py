"""Who plays the episodes of a collection: an expert, chance, or a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forethought.cli.libraries import load_quietly
from forethought.cli.models import Source, open_player
from forethought.config_parts import EnvironmentConfig, PromptConfig
from forethought.rollouts.collector import AnswerSettings, Collector
from forethought.rollouts.scripted import expert_answer, play, random_answer
from forethought.rollouts.seeding import Split, answer_seed, episode_seed
from forethought.rollouts.world import open_world
from forethought.types import Trajectory

SCRIPTED = ("expert", "random")
"""Names of players that are no models."""

Advance = Callable[[], object]
"""Called after every episode."""


@dataclass(frozen=True)
class Player:
    """Plays demonstration episodes by their numbers."""

    name: str
    """With its state: two players of one name play alike."""
    play: Callable[[Sequence[int], Advance], list[Trajectory]]
    close: Callable[[], None]


def scripted_player(
    name: str, environment: EnvironmentConfig, prompt: PromptConfig, *, seed: int
) -> Player:
    """The world's expert, or chance."""
    world = open_world(environment, prompt, default_image_size=None)
    instance = world.factory()

    def play_all(episodes: Sequence[int], advance: Advance) -> list[Trajectory]:
        # Chance is drawn anew for every file, so that one can be played without the others.
        randomness = answer_seed(seed, episodes[0], 0)
        answer = expert_answer(prompt.format) if name == "expert" else random_answer(randomness)
        seeds = (episode_seed(Split.DEMONSTRATION, seed, number) for number in episodes)
        trajectories: list[Trajectory] = []
        for trajectory in play(world.id, instance, world.prompter, answer, seeds):
            trajectories.append(trajectory)
            advance()
        return trajectories

    return Player(name, play_all, instance.close)


def model_player(
    source: Source,
    environment: EnvironmentConfig,
    prompt: PromptConfig,
    *,
    seed: int,
    temperature: float,
    max_new_tokens: int,
    slots: int,
    threads: int | None,
) -> Player:
    """A model, in several episodes at the same time."""
    load_quietly(threads=threads)
    policy, world = open_player(source, environment, prompt, slots=slots)
    runner = world.runner(slots, environment.workers)

    def play_all(episodes: Sequence[int], advance: Advance) -> list[Trajectory]:
        collector = Collector(
            environment_id=world.id,
            runner=runner,
            policy=policy,
            prompter=world.prompter,
            settings=AnswerSettings(max_new_tokens, temperature, "penalise"),
            split=Split.DEMONSTRATION,
            run_seed=seed,
            on_episode=advance,
        )
        return collector.collect_episodes(episodes).trajectories

    return Player(source.model, play_all, runner.close)
