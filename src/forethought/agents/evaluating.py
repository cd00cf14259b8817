"""Evaluates a policy by its name, and keeps the results in the run that they belong to."""

from contextlib import nullcontext
from typing import NamedTuple

from forethought.agents.policies import Progress, no_progress
from forethought.agents.sources import Source, close_api, find_source, open_agent
from forethought.configs.acting import ApiConfig, GenerationConfig
from forethought.configs.parts import EnvironmentConfig, PromptConfig, require
from forethought.durable import write_text
from forethought.evaluation.evaluate import Evaluated, EvaluationSettings, ScriptedRows, evaluate
from forethought.evaluation.results import Evaluation
from forethought.generation.contract import Policy
from forethought.libraries import load_quietly
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task, require_known
from forethought.runs.run_folder import RunFolder


class RunEvaluation(NamedTuple):
    """The results, and where they were written."""

    evaluation: Evaluation
    folder: RunFolder | None
    """None where they belong to no run."""


def evaluate_source(
    name: str,
    settings: EvaluationSettings,
    *,
    environment: EnvironmentConfig,
    prompt: PromptConfig,
    api: ApiConfig | None = None,
    generation: GenerationConfig | None = None,
    threads: int | None = None,
    keep: bool = True,
    scripted: ScriptedRows | None = None,
    progress: Progress = no_progress,
) -> RunEvaluation:
    """Plays held-out episodes, and keeps them with the results in the run folder.

    Args:
        name: a run folder, a checkpoint, a model, or `api:NAME`.
        generation: engines that serve this very model, if they are to write its responses.
        keep: False keeps nothing. Results in another environment or with other prompts than the
            run's own are never kept.
        scripted: random policy and expert as they have played before, if they have.
        progress: opens a progress bar.

    Raises:
        ForethoughtError: a model, environment or option that does not exist; constrained
            decoding of a model behind an endpoint; settings of an endpoint for a model that is
            none; a full disk.
    """
    require_known(environment)
    source, api = find_source(name), api or ApiConfig()
    is_fine = source.is_api or api == ApiConfig()
    require(is_fine, "api", "set", f"left out for {name}, which is no api:NAME")
    require(
        not (source.is_api and settings.sampling.constrain_actions),
        "constrain_actions",
        True,
        f"False for {name}, whose tokens are drawn elsewhere",
    )
    is_own = source.config is not None and (
        (source.config.environment, source.config.prompt) == (environment, prompt)
    )
    folder = source.run if is_own and keep else None
    with nullcontext() if folder is None else folder.lock():
        load_quietly(threads=threads)
        num_envs = min(settings.num_envs, settings.episodes)
        agent = open_agent(
            source, environment, prompt, slots=num_envs, api=api, generation=generation
        )
        evaluated = _play(source, agent, settings, environment, prompt, api, scripted, progress)
        if folder is not None:
            write_shard(folder.evaluation_episodes_path, evaluated.trajectories)
            write_text(folder.evaluation_path, evaluated.evaluation.to_json())
    return RunEvaluation(evaluated.evaluation, folder)


def _play(
    source: Source,
    agent: tuple[Policy, Task],
    settings: EvaluationSettings,
    environment: EnvironmentConfig,
    prompt: PromptConfig,
    api: ApiConfig,
    scripted: ScriptedRows | None,
    progress: Progress,
) -> Evaluated:
    policy, task = agent
    try:
        with progress(settings.episodes) as bar:
            return evaluate(
                policy,
                task,
                settings,
                checkpoint=source.checkpoint,
                response_format=prompt.format,
                scripted=scripted,
                workers=environment.workers,
                on_episode=bar.update,
            )
    finally:
        close_api(policy, api)
