"""Plays a model's held-out episodes, and keeps what came of it where it belongs."""

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import tyro

from forethought.cli.api import close_api
from forethought.cli.flags import Switch
from forethought.cli.libraries import load_quietly
from forethought.cli.models import Source, find_source, open_player
from forethought.cli.progress import progress_bar
from forethought.configs.acting import PolicyExtraction
from forethought.configs.api import ApiConfig
from forethought.configs.parts import EnvironmentConfig, PromptConfig, require
from forethought.evaluation.evaluate import Evaluated, EvaluationSettings
from forethought.evaluation.evaluate import evaluate as play_held_out
from forethought.evaluation.results import Evaluation
from forethought.evaluation.scripted_rows import ScriptedRows
from forethought.rollouts.store import write_shard
from forethought.rollouts.world import require_known
from forethought.runs.run_folder import RunFolder, write_text


@dataclass(frozen=True)
class Evaluate:
    """Whom to judge, where and how."""

    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """A run folder (its newest checkpoint), one of its checkpoints, or, together with
    --environment.id, a folder of `save_pretrained`, a hub id, or `api:NAME`, a model behind
    the chat-completions endpoint that OPENAI_BASE_URL names (key: OPENAI_API_KEY)."""

    evaluation: Annotated[EvaluationSettings, tyro.conf.arg(name="")] = field(
        default_factory=EvaluationSettings
    )

    json: Switch = False
    """Print the text of evaluation.json instead of a table."""

    threads: int | None = None
    """CPU threads of PyTorch; by default OMP_NUM_THREADS, else one fewer than there are cores."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    """By default, the world that the run was trained in."""

    prompt: PromptConfig = field(default_factory=PromptConfig)
    """By default, the run's own."""

    api: ApiConfig = field(default_factory=ApiConfig)

    beta: tuple[float, ...] | None = None
    """Of a run of `train q-sft` or `ilql`: act with each of these β, one row each, and leave the
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
        for name, value in (("policy_extraction", self.policy_extraction), ("top_p", self.top_p)):
            require(value is None or not is_alone, name, value, "nothing without --beta")
        is_chosen_by = self.training_seeds and is_alone
        require(not is_chosen_by, "training_seeds", True, "False without --beta")


class Judged(NamedTuple):
    """What was found, and where it was written."""

    evaluation: Evaluation
    folder: RunFolder | None
    """None where it belongs to no run."""


def judge(settings: Evaluate, *, keep: bool = True, scripted: ScriptedRows | None = None) -> Judged:
    """Plays, and keeps what came of it in the run folder that it belongs to.

    Args:
        keep: False keeps nothing.
        scripted: chance and expert as they have played before, if they have.

    Raises:
        ForethoughtError: a model, world or option that is not there; answers held to actions
            of a model that cannot be; settings of an endpoint for a model that is none; a full
            disk.
    """
    require_known(settings.environment)
    source = find_source(settings.run)
    is_fine = source.is_api or settings.api == ApiConfig()
    require(is_fine, "api", "set", f"left out for {settings.run}, which is no api:NAME")
    require(
        not (source.is_api and settings.evaluation.constrain_actions),
        "constrain_actions",
        True,
        f"False for {settings.run}, whose tokens are drawn elsewhere",
    )
    folder = _results_folder(source, settings) if keep else None
    with nullcontext() if folder is None else folder.lock():
        evaluated = _play(source, settings, scripted)
        if folder is not None:
            write_shard(folder.evaluation_episodes_path, evaluated.trajectories)
            write_text(folder.evaluation_path, evaluated.evaluation.to_json())
    return Judged(evaluated.evaluation, folder)


def _results_folder(source: Source, settings: Evaluate) -> RunFolder | None:
    """Where the results belong: to a run, if it was judged in its own world by its own prompt."""
    config = source.config
    is_own = config is not None and (
        (config.environment, config.prompt) == (settings.environment, settings.prompt)
    )
    return source.run if is_own else None


def _play(source: Source, settings: Evaluate, scripted: ScriptedRows | None) -> Evaluated:
    load_quietly(threads=settings.threads)
    judged = settings.evaluation
    policy, world = open_player(
        source,
        settings.environment,
        settings.prompt,
        slots=min(judged.num_envs, judged.episodes),
        api=settings.api,
    )
    try:
        with progress_bar("evaluate", judged.episodes, "episode") as bar:
            return play_held_out(
                policy,
                world,
                judged,
                checkpoint=source.checkpoint,
                answer_format=settings.prompt.format,
                scripted=scripted,
                workers=settings.environment.workers,
                on_episode=bar.update,
            )
    finally:
        close_api(policy, settings.api)
