"""A stored data set as offline reinforcement learning reads it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.configs.parts import require
from forethought.environments.contract import ExpertAction
from forethought.errors import ConfigError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.encoding import Encoder
from forethought.offline.admissible import AnswerTrie
from forethought.offline.episodes import Episode, to_episode
from forethought.prompts.answers import write_answer
from forethought.rollouts.store import read_earned, read_shards
from forethought.rollouts.world import World
from forethought.targets.reward_map import (
    RewardMap,
    StepMaps,
    fit_reward_map,
    fit_step_maps,
    read_reward_map,
    require_in_range,
)
from forethought.types import Earned, Trajectory


class OfflineData(NamedTuple):
    """Episodes, and what holds for all of them."""

    episodes: list[Episode]
    maps: StepMaps
    """What a return becomes, step by step."""
    dummy: int | None
    """A token that no episode's answer holds, or None where none is needed."""


def load_offline(
    config: QSFTConfig,
    world: World,
    policy: HuggingFacePolicy,
    *,
    on_episode: Callable[[], object] | None = None,
) -> OfflineData:
    """Reads the data, refuses what does not fit, and lays the episodes out as tokens.

    Args:
        on_episode: called after every episode, for a progress bar.

    Raises:
        ConfigError: no step whose outcome is known, equal returns, a return outside the reward
            map, or an answer that is no legal action where the action set is that.
        StorageError: a shard is refused.
    """
    path = Path(config.data)
    maps = find_maps(config)
    trie = _legal_answers(world, policy.encoder) if config.action_set == "legal" else None
    episodes: list[Episode] = []
    for number, trajectory in enumerate(stored(path)):
        name = f"{path}, trajectory {number}"
        if (
            config.return_normalization == "data"
        ):  # Maps of steps are fitted to just these episodes.
            require_in_range(trajectory, maps.at(0), gamma=config.gamma, name=name)
        episode = to_episode(trajectory, policy)
        if trie is not None:
            choices = [one for answer in episode.answers() for one in trie.choices(answer)]
            episode = replace(episode, choices=tuple(choices))
        episodes.append(episode)
        if on_episode is not None:
            on_episode()
    _require_known(episodes, lambda one: one.known_actions > 0, config.data)
    dummy = find_dummy(episodes, policy.encoder) if config.residual_mass == "token" else None
    return OfflineData(episodes, maps, dummy)


def load_episodes(
    data: str,
    policy: HuggingFacePolicy,
    is_known: Callable[[Episode], bool],
    *,
    on_episode: Callable[[], object] | None = None,
) -> list[Episode]:
    """The data as sequences of tokens.

    Args:
        is_known: whether an episode has anything from which values could be learned.
        on_episode: called after every episode, for a progress bar.

    Raises:
        ConfigError: no episode has.
        StorageError: a shard is refused.
    """
    episodes: list[Episode] = []
    for trajectory in stored(Path(data)):
        episodes.append(to_episode(trajectory, policy))
        if on_episode is not None:
            on_episode()
    _require_known(episodes, is_known, data)
    return episodes


def _require_known(
    episodes: Sequence[Episode], is_known: Callable[[Episode], bool], data: str
) -> None:
    if not any(is_known(episode) for episode in episodes):
        raise ConfigError(
            f"data: {data} holds no step whose outcome is known — expected episodes that "
            "came to their end"
        )


def stored(path: Path) -> Iterator[Trajectory]:
    """The trajectories of a file or folder that have steps; crashed episodes are none."""
    return (one for one in read_shards(path) if one.steps and one.failure is None)


def stored_earned(path: Path) -> Iterator[Earned]:
    """What these trajectories earned, in the same order; their texts are not read."""
    return (one for one in read_earned(path) if one.rewards and one.failure is None)


def find_maps(config: QSFTConfig) -> StepMaps:
    """The map that the settings or the data declare for all steps, or else the narrowest one;
    or the narrowest of each step.

    Raises:
        ConfigError: there is nothing to fit it to.
    """
    path = Path(config.data)
    if config.return_normalization == "step":
        return fit_step_maps(stored_earned(path), gamma=config.gamma)
    if config.return_min is not None and config.return_max is not None:
        return StepMaps((RewardMap(config.return_min, config.return_max),))
    declared = read_reward_map(path if path.is_dir() else path.parent)
    return StepMaps((declared or fit_reward_map(stored_earned(path), gamma=config.gamma),))


def find_dummy(episodes: Sequence[Episode], encoder: Encoder) -> int:
    """A token that is never said: the padding token, or the first that no answer holds.

    Raises:
        ConfigError: the answers hold every token there is.
    """
    said = {token for episode in episodes for answer in episode.answers() for token in answer}
    said |= {*encoder.stop_ids, *encoder.placeholder_ids}
    candidates = [encoder.tokenizer.pad_token_id, *range(len(encoder.tokenizer))]
    for token in candidates:
        if isinstance(token, int) and token not in said:
            return token
    raise ConfigError(
        "residual_mass is 'token', but the data hold every token — use residual_mass spread"
    )


def _legal_answers(world: World, encoder: Encoder) -> AnswerTrie:
    actions = world.actions
    expected = f"vocabulary for {world.id}, which has no fixed list of actions"
    require(actions is not None, "action_set", "legal", expected)
    assert actions is not None
    texts = (write_answer(ExpertAction(action, ()), "action_only") for action in actions)
    return AnswerTrie(encoder.tokenize_answer(text) for text in texts)
