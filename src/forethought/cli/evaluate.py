"""`forethought evaluate RUN`; with `--beta`, one policy that acts more or less by its values."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from forethought.agents.evaluating import RunEvaluation, evaluate_source
from forethought.agents.sources import find_source, open_agent
from forethought.cli.flags import Operand, Switch
from forethought.cli.next_command import require_environment
from forethought.cli.settings import describe, read_settings
from forethought.cli.terminal import episodes_bar, evaluation_table, progress_bar, rows_table
from forethought.configs.acting import (
    ActingConfig,
    ApiConfig,
    GenerationConfig,
    PolicyExtraction,
    ValueActingConfig,
)
from forethought.configs.parts import EnvironmentConfig, Inline, PromptConfig, require
from forethought.errors import ConfigError
from forethought.evaluation.evaluate import EvaluationSettings, ScriptedRows, play_policy, row_of
from forethought.evaluation.results import EvaluationRow, row_to_json
from forethought.generation.contract import Policy
from forethought.libraries import load_quietly
from forethought.rollouts.seeding import Split


@dataclass(frozen=True)
class Evaluate:
    """Settings of `forethought evaluate`."""

    run: Annotated[str, Operand("RUN")]
    """A run folder (its newest checkpoint), one of its checkpoints, or, together with
    --environment.id, a folder of `save_pretrained`, a hub id, or `api:NAME`, a model behind
    the OpenAI-compatible API at OPENAI_BASE_URL (key: OPENAI_API_KEY)."""

    evaluation: Annotated[EvaluationSettings, Inline()] = field(default_factory=EvaluationSettings)

    json: Switch = False
    """Print the text of evaluation.json instead of a table."""

    threads: int | None = None
    """CPU threads of PyTorch; by default OMP_NUM_THREADS, else one fewer than there are cores."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    """By default, the environment that the run was trained in."""

    prompt: PromptConfig = field(default_factory=PromptConfig)
    """By default, the run's own."""

    api: ApiConfig = field(default_factory=ApiConfig)

    engine: tuple[str, ...] = ()
    """Addresses, `http://HOST:PORT`, of engines that serve RUN and write its responses in place of
    this process (`forethought serve RUN`, or vLLM)."""

    beta: tuple[float, ...] | None = None
    """For a run of `train q-sft` or `ilql`: act with each of these β, one row each, and leave the
    run's own results as they are."""

    policy_extraction: PolicyExtraction | None = None
    """With --beta: what exp(β …) is taken of; by default as the run has it."""

    top_p: float | None = None
    """With --beta: the nucleus that is kept; by default as the run has it."""

    training_seeds: Switch = False
    """With --beta: play episodes that are not the held-out ones, to choose a β by."""

    def __post_init__(self) -> None:
        require(self.beta != (), "beta", "()", "one β or more")
        is_alone = self.beta is None
        require(is_alone or not self.engine, "engine", self.engine, "none with --beta")
        for name, value in (("policy_extraction", self.policy_extraction), ("top_p", self.top_p)):
            require(value is None or not is_alone, name, value, "nothing without --beta")
        is_chosen_by = self.training_seeds and is_alone
        require(not is_chosen_by, "training_seeds", True, "False without --beta")


def evaluate_with_bar(
    settings: Evaluate, *, keep: bool = True, scripted: ScriptedRows | None = None
) -> RunEvaluation:
    """Evaluates with a progress bar; as `evaluate_source`."""
    return evaluate_source(
        settings.run,
        settings.evaluation,
        environment=settings.environment,
        prompt=settings.prompt,
        api=settings.api,
        generation=GenerationConfig(settings.engine),
        threads=settings.threads,
        keep=keep,
        scripted=scripted,
        progress=episodes_bar("evaluate"),
    )


def evaluate(settings: Evaluate) -> None:
    """Play held-out episodes; compare with random policy, expert and ceiling.

    The episodes are the same for every model and are never trained on. A run folder gets
    evaluation.json, and the episodes as evaluation_episodes.parquet; another environment or prompt
    than the run's own, or a checkpoint that is named itself, leaves the folder as it is.

    Examples:
      forethought evaluate runs/ppo
      forethought evaluate runs/ppo --episodes 1000 --temperature 0.2 --json
      forethought evaluate runs/ppo/checkpoints/step_20
      forethought evaluate Qwen/Qwen2.5-VL-3B-Instruct --environment.id Blackjack
      forethought evaluate runs/wordle_q_sft --beta 0 4 16 64 --policy-extraction ratio
      forethought evaluate api:gpt-4o-mini --environment.id Wordle --api.style react \\
          --max-new-tokens 512 --api.requests-per-minute 60
    """
    if settings.beta is not None:
        sweep_beta(settings)
        return
    found = evaluate_with_bar(settings)
    if settings.json:
        print(found.evaluation.to_json(), end="")
        return
    for line in evaluation_table(found.evaluation):
        print(line)
    if found.folder is not None:
        folder = found.folder
        print(f"\nwritten: {folder.evaluation_path}, {folder.evaluation_episodes_path}")
        print(f"next: forethought report {folder.path}")


def evaluate_defaults(words: Sequence[str]) -> Evaluate | None:
    """A run's environment, prompt and longest completion, as defaults of the flags.

    Raises:
        UnknownNameError: neither a run nor an environment was named.
    """
    typed = read_settings(
        Evaluate, words, program="forethought evaluate", description=describe(evaluate)
    )
    source = find_source(typed.run)
    if source.config is None:
        require_environment(typed.run, words)
        return None
    own = typed.evaluation
    longest = source.max_new_tokens or own.sampling.max_new_tokens
    own = replace(own, sampling=replace(own.sampling, max_new_tokens=longest))
    return Evaluate(
        typed.run,
        evaluation=own,
        environment=source.config.environment,
        prompt=source.config.prompt,
    )


def sweep_beta(settings: Evaluate) -> None:
    """Plays the same episodes once for every β, and prints a row for each.

    Raises:
        ForethoughtError: a model, environment or option that is not there; a run without values.
    """
    load_quietly(threads=settings.threads)
    source, judged = find_source(settings.run), settings.evaluation
    slots = min(judged.num_envs, judged.episodes)
    policy, task = open_agent(
        source, settings.environment, settings.prompt, slots=slots, api=settings.api
    )
    extraction, ways = _ways(policy, settings)
    rows: list[EvaluationRow] = []
    split = Split.TRAINING if settings.training_seeds else Split.EVALUATION
    with progress_bar("evaluate", judged.episodes * len(ways), "episode") as bar:
        for beta, act in zip(settings.beta or (), ways, strict=True):
            act()
            trajectories = play_policy(
                policy,
                task,
                judged,
                split=split,
                workers=settings.environment.workers,
                on_episode=bar.update,
            )
            rows.append(row_of(f"β = {beta:g}", trajectories))
    if not settings.training_seeds:
        scripted = ScriptedRows()
        rows = [
            scripted.random(task, judged.episodes, seed=judged.seed),
            *rows,
            scripted.expert(task, judged.episodes, settings.prompt.format),
            EvaluationRow("ceiling", success_rate=task.ceiling_rate),
        ]
    if settings.json:
        print(json.dumps([row_to_json(row) for row in rows], indent=2, allow_nan=False))
        return
    which = "training" if settings.training_seeds else "held-out"
    temperature = judged.sampling.temperature
    how = "greedy" if temperature == 0 else f"temperature {temperature:g}"
    print(
        f"{task.id}, {judged.episodes} {which} episodes, {how}, {extraction}, "
        f"{Path(source.model).parent.name}\n"
    )
    for line in rows_table(rows):
        print(line)


def _ways(policy: Policy, settings: Evaluate) -> tuple[str, list[Callable[[], None]]]:
    """What values are, and what makes the policy act by them as much as each β says.

    Raises:
        ConfigError: a run without values, or without the ones that were asked for.
    """
    from forethought.value_guided.policy import WeightedPolicy

    if not isinstance(policy, WeightedPolicy):
        raise ConfigError(
            f"--beta was given, but {settings.run} is no run of train q-sft or ilql whose second "
            "phase has begun — leave it out"
        )
    own: ActingConfig | ValueActingConfig = policy.acting
    if isinstance(own, ActingConfig):
        own = replace(own, policy_extraction=settings.policy_extraction or own.policy_extraction)
        values = own.policy_extraction
    elif settings.policy_extraction is None:
        values = "values of heads"
    else:
        raise ConfigError(
            f"--policy-extraction was given, but {settings.run} has heads for its values: "
            "nothing to extract — leave it out"
        )
    top_p = own.top_p if settings.top_p is None else settings.top_p
    ways = [replace(own, beta=beta, top_p=top_p) for beta in settings.beta or ()]
    return values, [partial(policy.act_as, acting) for acting in ways]
