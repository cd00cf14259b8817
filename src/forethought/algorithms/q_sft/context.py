"""What Q-SFT works with: the data, and π_φ, p_θ and its target network p_θ̄."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from torch import nn

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.configs.parts import require
from forethought.environments.contract import ExpertAction
from forethought.errors import ConfigError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.encoding import Encoder
from forethought.models.loading import BEHAVIOR
from forethought.offline.dataset import require_known, stored, stored_earned
from forethought.offline.episodes import Episode, to_episode
from forethought.prompts.responses import write_response
from forethought.rollouts.task import Task
from forethought.runs.checkpoints import MODEL_DIR
from forethought.targets.reward_map import (
    RewardMap,
    StepMaps,
    fit_reward_map,
    fit_step_maps,
    read_reward_map,
    require_in_range,
)
from forethought.training.run import Run
from forethought.training.start import start
from forethought.value_guided.models import Twin, load_twin, twin_again, twin_of
from forethought.value_guided.policy import LIKELIHOOD, Settings

TARGET = "target"
"""Folder of p_θ̄, beside the two that act."""

Phase = Literal["behavior", "returns", "likelihood"]
"""What is learned: π_φ; p_θ from what the data brought; p_θ from its target network."""


# Models


class QSFTModels:
    """Satisfies `Trainable`: the module that the present phase trains."""

    def __init__(self, behavior: HuggingFacePolicy, settings: Settings, *, is_joint: bool) -> None:
        """
        Args:
            behavior: π_φ; the other two are copied from it when they are first needed.
            is_joint: whether π_φ learns on while p_θ does.
        """
        self.behavior = behavior
        self.likelihood: Twin | None = None
        self.target: Twin | None = None
        self._settings = settings
        self._is_joint = is_joint
        self._trained: nn.Module = behavior.module

    @property
    def module(self) -> nn.Module:
        """Its parameters that require a gradient are trained."""
        return self._trained

    def begin(self, phase: Phase) -> None:
        """Makes the models that the phase works with, and frees those that it does not move."""
        if phase == "behavior":
            return
        if self.likelihood is None:
            self.likelihood = twin_of(self.behavior)
        if self.target is None:
            self.target = twin_again(self.likelihood)
        self.target.module.requires_grad_(requires_grad=False)
        self.target.module.eval()
        if self._is_joint:
            both = {BEHAVIOR: self.behavior.module, LIKELIHOOD: self.likelihood.module}
            self._trained = nn.ModuleDict(both)
        else:
            self.behavior.module.requires_grad_(requires_grad=False)
            self.behavior.module.eval()
            self._trained = self.likelihood.module

    def update_target_network(self, polyak_tau: float) -> None:
        """θ̄ ← (1 - α) θ̄ + α θ, of what is trained."""
        assert self.likelihood is not None
        assert self.target is not None
        self.target.follow(self.likelihood.module, polyak_tau)

    def save(self, folder: Path) -> None:
        """Writes what is there, each as a model of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        self.behavior.save(folder / BEHAVIOR)
        for name, twin in ((LIKELIHOOD, self.likelihood), (TARGET, self.target)):
            if twin is not None:
                twin.save(folder / name, self.behavior)
        self._settings.save(folder)


# Data


class CompletionTrie:
    """Responses, token by token: what may come next after the tokens so far."""

    def __init__(self, completions: Iterable[Sequence[int]]) -> None:
        """
        Args:
            answers: token ids, the end-of-sequence token included.
        """
        self._next: dict[tuple[int, ...], tuple[int, ...]] = {}
        for completion in completions:
            for length, token in enumerate(completion):
                so_far = tuple(completion[:length])
                choices = self._next.get(so_far, ())
                if token not in choices:
                    self._next[so_far] = (*choices, token)

    def choices(self, completion: Sequence[int]) -> list[tuple[int, ...]]:
        """For each token of a response, what could have stood there.

        Raises:
            ConfigError: it is none of the responses, or not the beginning of one.
        """
        found: list[tuple[int, ...]] = []
        for length, token in enumerate(completion):
            choices = self._next.get(tuple(completion[:length]), ())
            if token not in choices:
                raise ConfigError(
                    "action_set is 'legal', but the data hold a response that names no action of "
                    f"this environment (token {length} of {len(completion)}) — expected responses "
                    "in the form of --prompt.format action_only; use action_set vocabulary, or "
                    "leave it out"
                )
            found.append(choices)
        return found


class OfflineData(NamedTuple):
    """Episodes, and what holds for all of them."""

    episodes: list[Episode]
    maps: StepMaps
    """What a return becomes, step by step."""
    residual: int | None
    """A token that no episode's response holds, or None where none is needed."""


def load_offline(
    config: QSFTConfig,
    task: Task,
    policy: HuggingFacePolicy,
    *,
    on_episode: Callable[[], object] | None = None,
) -> OfflineData:
    """Reads the data, refuses what does not fit, and lays the episodes out as tokens.

    Args:
        on_episode: called after every episode, for a progress bar.

    Raises:
        ConfigError: no step whose outcome is known, equal returns, a return outside the reward
            map, or a response that is no legal action where the action set is that.
        StorageError: a shard is refused.
    """
    path = Path(config.data)
    maps = find_maps(config)
    trie = _legal_completions(task, policy.encoder) if config.action_set == "legal" else None
    episodes: list[Episode] = []
    for number, trajectory in enumerate(stored(path)):
        name = f"{path}, trajectory {number}"
        if (
            config.return_normalization == "data"
        ):  # Maps of steps are fitted to just these episodes.
            require_in_range(trajectory, maps.at(0), gamma=config.gamma, name=name)
        episode = to_episode(trajectory, policy)
        if trie is not None:
            choices = [
                one for completion in episode.completions() for one in trie.choices(completion)
            ]
            episode = replace(episode, choices=tuple(choices))
        episodes.append(episode)
        if on_episode is not None:
            on_episode()
    require_known(episodes, lambda one: one.known_actions > 0, config.data)
    residual = (
        find_residual_token(episodes, policy.encoder) if config.residual_mass == "token" else None
    )
    return OfflineData(episodes, maps, residual)


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


def find_residual_token(episodes: Sequence[Episode], encoder: Encoder) -> int:
    """A token that is never said: the padding token, or the first that no response holds.

    Raises:
        ConfigError: the responses hold every token there is.
    """
    said = {
        token
        for episode in episodes
        for completion in episode.completions()
        for token in completion
    }
    said |= {*encoder.stop_ids, *encoder.placeholder_ids}
    candidates = [encoder.tokenizer.pad_token_id, *range(len(encoder.tokenizer))]
    for token in candidates:
        if isinstance(token, int) and token not in said:
            return token
    raise ConfigError(
        "residual_mass is 'token', but the data hold every token — use residual_mass spread"
    )


def _legal_completions(task: Task, encoder: Encoder) -> CompletionTrie:
    actions = task.actions
    expected = f"vocabulary for {task.id}, which has no fixed list of actions"
    require(actions is not None, "action_set", "legal", expected)
    assert actions is not None
    texts = (write_response(ExpertAction(action, ()), "action_only") for action in actions)
    return CompletionTrie(encoder.tokenize_response(text) for text in texts)


# Both


class QSFTContext(NamedTuple):
    """What every update works with."""

    models: QSFTModels
    data: OfflineData
    config: QSFTConfig
    run: Run


def start_context(config: QSFTConfig, run: Run) -> QSFTContext:
    """Opens the environment and the data, and makes the models: from the run's checkpoint where it
    goes on.

    Raises:
        ForethoughtError: an environment, option, model, checkpoint or data set that is not there.
    """
    task, behavior = start(config, run, slots=1, critic=False)
    with run.bar("reading", None) as bar:
        data = load_offline(config, task, behavior, on_episode=bar.update)
    settings = Settings(config.acting, config.support, data.residual)
    models = QSFTModels(behavior, settings, is_joint=config.phases == "joint")
    if run.checkpoint is not None and (run.checkpoint / MODEL_DIR / LIKELIHOOD).is_dir():
        folder = run.checkpoint / MODEL_DIR
        models.likelihood = load_twin(folder / LIKELIHOOD, behavior)
        models.target = load_twin(folder / TARGET, behavior)
    return QSFTContext(models, data, config, run)
