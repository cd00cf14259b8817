"""What a Python program calls: train, evaluate, collect, report, and what they work with.

    import forethought as ft

    run = ft.train(ft.PPOConfig(model="runs/sft", environment="NumberLine"))
    result = ft.evaluate(run, episodes=500)
    print(result.success.rate, result.success.interval)
    ft.report(run)

`import forethought` loads nothing of this before it is used. A path may be text, a `Path`, or a
run that `train` has returned.
"""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from forethought.agents.collecting import CollectionSettings, collect_episodes
from forethought.agents.evaluating import evaluate_source
from forethought.agents.policies import is_scripted
from forethought.agents.sources import find_source, open_agent
from forethought.algorithms.registry import algorithm_of
from forethought.configs.acting import ApiConfig
from forethought.configs.contract import AnyConfig
from forethought.configs.file import Setting, dump_config, preset_config, with_settings
from forethought.configs.parts import EnvironmentConfig, PromptConfig, SamplingConfig
from forethought.environments.reward import RewardFunction, is_importable, reward_name
from forethought.errors import ConfigError, RunFolderError, UnknownNameError
from forethought.evaluation.evaluate import EvaluationSettings
from forethought.evaluation.results import Evaluation
from forethought.evaluation.statistics import CollectionStats
from forethought.generation.contract import Policy
from forethought.libraries import load_quietly
from forethought.rollouts.store import read_shards
from forethought.rollouts.task import require_known
from forethought.runs.run_folder import RunFolder
from forethought.runs.trackers import TrackerName, logging_to
from forethought.training.run import Existing, OnIteration, calling
from forethought.types import Trajectory

StrPath = str | os.PathLike[str]


@overload
def train(
    config: AnyConfig,
    /,
    *,
    existing: Existing = "refuse",
    on_iteration: OnIteration | None = None,
    reward: RewardFunction | None = None,
    log: Sequence[TrackerName] | None = None,
) -> RunFolder: ...
@overload
def train(
    algorithm: str,
    /,
    *,
    existing: Existing = "refuse",
    on_iteration: OnIteration | None = None,
    reward: RewardFunction | None = None,
    log: Sequence[TrackerName] | None = None,
    **settings: object,
) -> RunFolder: ...
def train(
    config: AnyConfig | str,
    /,
    *,
    existing: Existing = "refuse",
    on_iteration: OnIteration | None = None,
    reward: RewardFunction | None = None,
    log: Sequence[TrackerName] | None = None,
    **settings: object,
) -> RunFolder:
    """Trains a model, and returns the run folder.

    Args:
        config: settings of an algorithm, such as `PPOConfig(...)`; or its name or that of a
            preset ("ppo", "grpo"), with settings as further arguments: `train("ppo",
            model="runs/sft", environment="NumberLine", total_steps=1024)`. A field of a group is
            given with the group (`optimizer=OptimizerConfig(learning_rate=1e-4)`).
        existing: what to do with a run that is in the output folder: "refuse", "resume" (it goes
            on where it stopped; its settings must be equal), or "overwrite".
        on_iteration: called after every iteration with the run folder and the numbers that
            `metrics.jsonl` gets, `step` first. If it returns True, the run stops with a
            checkpoint; `existing="resume"` continues it.
        reward: gives the reward of every step in place of the environment. Settings record its
            name, `module:function`; only a function that can be imported by that name is found
            by worker processes, and by a run that is resumed from the command line.
        log: where the numbers of `metrics.jsonl` go besides: "tensorboard", "wandb", "trackio";
            by default TensorBoard, or what a resumed run has.

    Raises:
        ForethoughtError: settings, a model, an environment or data that cannot be used; the
            message is one line that says what to do.
    """
    if isinstance(config, str):
        config = _config_of(config, settings)
    elif settings:
        raise TypeError(f"{', '.join(settings)}: settings belong into the config that was given")
    if reward is not None:
        config = _rewarded(config, reward)
    require_known(config.environment)
    folder = RunFolder(Path(config.output))
    if existing == "resume" and folder.is_run:
        stored = folder.config_path.read_text(encoding="utf-8")
        if stored != dump_config(config):
            raise RunFolderError(
                f"{folder.path}: has other settings — a run is resumed with its own settings "
                "(config.yaml), or started in another output folder"
            )
    load_quietly(threads=config.compute.threads)
    chosen = algorithm_of(config)
    if existing != "resume":
        chosen.check_run(config)
    with calling(on_iteration), logging_to(log):
        return RunFolder(chosen.train_run(config, existing=existing))


def evaluate(
    run: StrPath,
    *,
    episodes: int = 500,
    temperature: float = 0.0,
    environment: EnvironmentConfig | str | None = None,
    prompt: PromptConfig | None = None,
    settings: EvaluationSettings | None = None,
    threads: int | None = None,
    keep: bool = True,
) -> Evaluation:
    """Plays held-out episodes; `evaluation.success` has rate, interval and episodes, and the
    random policy, the expert and the ceiling are rows beside the policy.

    Args:
        run: a run (its newest checkpoint), a checkpoint, a model's folder, a hub id, or `api:NAME`.
        episodes: how many; their seeds are the same for every policy, and never trained on.
        temperature: 0 takes the most likely token.
        environment: by default the one of the run's training; a model that is no run needs one.
        prompt: by default the run's own.
        settings: everything about the evaluation, in place of `episodes` and `temperature`.
        threads: CPU threads of PyTorch.
        keep: whether `evaluation.json` and the episodes are written into the run folder, where
            environment and prompts are the run's own.

    Raises:
        ForethoughtError: a model, environment or option that does not exist.
    """
    name = os.fspath(run)
    source = find_source(name)
    if settings is None:
        longest = source.max_new_tokens or SamplingConfig().max_new_tokens
        sampling = SamplingConfig(temperature=temperature, max_new_tokens=longest)
        settings = EvaluationSettings(episodes, sampling=sampling)
    chosen, own_prompt = _seen_by(name, environment, prompt)
    found = evaluate_source(
        name, settings, environment=chosen, prompt=own_prompt, threads=threads, keep=keep
    )
    return found.evaluation


def collect(
    output: StrPath,
    *,
    policy: StrPath = "expert",
    environment: EnvironmentConfig | str | None = None,
    episodes: int = 500,
    prompt: PromptConfig | None = None,
    seed: int = 0,
    temperature: float = 1.0,
    max_new_tokens: int | None = None,
) -> CollectionStats:
    """Stores episodes as Parquet, for `train("sft", data=output)` and the offline algorithms. The
    same call again continues where it stopped.

    Args:
        output: the folder for the files.
        policy: "expert", "random", "data" (the author of the environment's offline data,
            "data:0.5" at another skill), or a model as `evaluate` takes it.
        environment: by default a run's own; NumberLine for scripted policies.
        episodes: how many, those included that are stored already.
        prompt: by default a run's own.
        seed: of episodes and completions.
        temperature: of a model's completions.
        max_new_tokens: longest completion of a model; by default the run's own, else 128.

    Raises:
        ForethoughtError: a model, environment or option that does not exist; the folder holds
            another collection, or cannot be written.
    """
    name = os.fspath(policy)
    longest = max_new_tokens
    if is_scripted(name):
        chosen, own_prompt = _environment(environment), prompt or PromptConfig()
    else:
        chosen, own_prompt = _seen_by(name, environment, prompt)
        longest = longest or find_source(name).max_new_tokens
    longest = longest or SamplingConfig().max_new_tokens
    settings = CollectionSettings(
        os.fspath(output),
        policy=name,
        episodes=episodes,
        seed=seed,
        sampling=SamplingConfig(
            temperature=temperature, max_new_tokens=longest or SamplingConfig().max_new_tokens
        ),
        environment=chosen,
        prompt=own_prompt,
    )
    return collect_episodes(settings)


def report(run: StrPath) -> Path:
    """Writes `report.html` into the run folder: curves, results and episodes.

    Raises:
        RunFolderError: this is no run folder.
        StorageError: something in it is damaged, or cannot be written.
    """
    from forethought.reports import write_report

    return write_report(RunFolder.open(Path(run)).path)


def load_policy(
    run: StrPath,
    *,
    environment: EnvironmentConfig | str | None = None,
    prompt: PromptConfig | None = None,
    max_batch_size: int = 1,
) -> Policy:
    """A trained policy, ready to act: `prompt`, `submit` and `advance` of `generation.contract`.

    Args:
        run: as `evaluate` takes it.
        environment: by default a run's own; one that was not trained here needs one.
        prompt: by default a run's own.
        max_batch_size: completions that are generated at a time.

    Raises:
        ForethoughtError: a model or environment that does not exist.
    """
    name = os.fspath(run)
    chosen, own_prompt = _seen_by(name, environment, prompt)
    load_quietly()
    source = find_source(name)
    return open_agent(source, chosen, own_prompt, slots=max_batch_size, api=ApiConfig())[0]


def read_trajectories(source: StrPath) -> Iterator[Trajectory]:
    """Stored episodes, one after the other, from a Parquet file or a folder of such files.

    Raises:
        StorageError: nothing is stored there, or it is damaged.
    """
    return read_shards(Path(source))


def _environment(environment: EnvironmentConfig | str | None) -> EnvironmentConfig:
    if environment is None:
        return EnvironmentConfig()
    return EnvironmentConfig(environment) if isinstance(environment, str) else environment


def _seen_by(
    name: str, environment: EnvironmentConfig | str | None, prompt: PromptConfig | None
) -> tuple[EnvironmentConfig, PromptConfig]:
    """Environment and prompts: those that were given, or else those of the run."""
    config = find_source(name).config
    if config is None:
        if environment is None:
            raise UnknownNameError(
                f"{name} is not a run folder — name one; or, for another model, "
                "name the environment as well, with environment=…"
            )
        return _environment(environment), prompt or PromptConfig()
    chosen = config.environment if environment is None else _environment(environment)
    return chosen, prompt or config.prompt


def _config_of(algorithm: str, settings: dict[str, object]) -> AnyConfig:
    """Settings of an algorithm by its name; what was not given has its default.

    Raises:
        UnknownNameError: there is no such algorithm.
        ConfigError: an unknown field, or a value that it may not have.
    """
    config: Any = preset_config(algorithm)
    whole = {name: value for name, value in settings.items() if dataclasses.is_dataclass(value)}
    for name, value in whole.items():
        if not isinstance(value, type(getattr(config, name, None))):
            raise ConfigError(f"{name} is {type(value).__name__} — expected another settings group")
    if whole:
        config = dataclasses.replace(config, **whole)
    plain = {name: value for name, value in settings.items() if name not in whole}
    if isinstance(plain.get("environment"), str):
        plain["environment.id"] = plain.pop("environment")
    values = [Setting(name, _as_yaml(value)) for name, value in plain.items()]
    return with_settings(config, values)


def _as_yaml(value: object) -> object:
    """As a file of settings would hold it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return list(value) if isinstance(value, tuple) else value


def _rewarded(config: AnyConfig, reward: RewardFunction) -> AnyConfig:
    """The settings with this reward.

    Raises:
        ConfigError: worker processes could not find the function.
    """
    name = reward_name(reward)
    if config.environment.workers and not is_importable(name, reward):
        raise ConfigError(
            f"environment.workers is {config.environment.workers}, and worker processes cannot "
            f"import the reward function {name} — put it into a module, or use no workers"
        )
    return with_settings(config, [Setting("environment.reward", name)])
