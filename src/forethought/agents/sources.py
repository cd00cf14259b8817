"""What may be named as a policy: a run, a checkpoint, a model's folder, a hub id, or a
model behind an endpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from forethought.agents.endpoints import open_api_player
from forethought.algorithms.registry import algorithm_of
from forethought.chat.policy import PREFIX
from forethought.configs.api import ApiConfig
from forethought.configs.contract import AnyConfig
from forethought.configs.file import load_any_config
from forethought.configs.parts import TINY_MODELS, EnvironmentConfig, PromptConfig
from forethought.errors import ConfigError
from forethought.generation.contract import Policy
from forethought.rollouts.task import Task, open_task
from forethought.runs.checkpoints import newest_checkpoint
from forethought.runs.run_folder import RunFolder
from forethought.runs.sources import MODEL_DIR, find_checkpoint


class Source(NamedTuple):
    """Where a model lies, and what is known of how it was trained."""

    model: str
    """A folder of `save_pretrained`, a hub id, or `api:NAME`."""
    run: RunFolder | None
    """The run, where one was named; its checkpoints and other models have none."""
    checkpoint: str | None
    """`step_400`."""
    config: AnyConfig | None
    """The settings that it was trained with."""

    @property
    def is_api(self) -> bool:
        """Whether it is somebody else's model, behind an endpoint."""
        return self.model.startswith(PREFIX)

    @property
    def max_new_tokens(self) -> int | None:
        """The longest answer that it was trained to give, where that is known."""
        return None if self.config is None else self.config.max_new_tokens

    @property
    def open_policy(self) -> Callable[..., tuple[Policy, Task]] | None:
        """What opens a policy that is no language model, where its algorithm trains such."""
        return None if self.config is None else algorithm_of(self.config).open_policy


def find_source(name: str) -> Source:
    """What a name stands for; of a run, its newest checkpoint.

    Raises:
        CheckpointError: the checkpoint, or the run's newest one, is damaged, or there is none.
        ConfigError: the run's settings cannot be read; or the name is that of the tiny
            model, which is nothing before it is trained.
    """
    path = Path(name)
    if name in TINY_MODELS and not path.exists():
        raise ConfigError(
            f'model "{name}" has learned nothing yet — train it (`forethought train sft`), '
            "then name its run folder"
        )
    folder = RunFolder(path)
    if folder.is_run:
        config = load_any_config(folder.config_path)
        newest = newest_checkpoint(folder.checkpoints_dir)
        return Source(str(newest / MODEL_DIR), folder, newest.name, config)
    checkpoint = find_checkpoint(path)
    if checkpoint is not None:
        its_run = RunFolder(path.parent.parent)
        config = load_any_config(its_run.config_path) if its_run.is_run else None
        return Source(str(path / MODEL_DIR), None, path.name, config)
    return Source(name, None, None, None)


def open_player(
    source: Source,
    environment: EnvironmentConfig,
    prompt: PromptConfig,
    *,
    slots: int,
    api: ApiConfig,
) -> tuple[Policy, Task]:
    """Loads a model, and opens a world in the way that the model sees it.

    Args:
        slots: answers that a model generates at a time.
        api: how a model behind an endpoint is asked.

    Raises:
        ForethoughtError: a model, world or option that is not there.
    """
    if source.is_api:
        return open_api_player(source.model, environment, prompt, api)
    if (open_policy := source.open_policy) is not None:
        return open_policy(Path(source.model), environment, prompt, slots=slots)
    from forethought.value_guided.policy import load_acting

    if prompt.history == "summary":  # refuses at once what is no use once the model is loaded
        open_task(environment, prompt, default_image_size=None)
    policy = load_acting(source.model, slots=slots)
    size = policy.preferred_image_size
    return policy, open_task(environment, prompt, default_image_size=size)
