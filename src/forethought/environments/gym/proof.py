"""What a stranger's environment must show before a run starts on it."""

from forethought.environments.check import EnvironmentCheckError, check_environment
from forethought.environments.slots import Factory
from forethought.errors import EnvironmentUnusableError

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
    first, second = _start(factory, 0), _start(factory, 1)
    seeds = "different seeds start differently" if first != second else "all seeds start alike"
    return f"{name}: {EPISODES} episodes replayed on a second copy, step by step equal; {seeds}"


def _start(factory: Factory, seed: int) -> str:
    environment = factory()
    try:
        return environment.reset(seed).state_key
    finally:
        environment.close()
