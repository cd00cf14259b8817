"""The settings of `forethought evaluate`, which `quickstart` and `study` use as well."""

from dataclasses import dataclass, field
from typing import Annotated

import tyro

from forethought.agents.evaluating import RunEvaluation, evaluate_source
from forethought.cli.flags import Switch
from forethought.cli.progress import episodes_bar
from forethought.configs.acting import PolicyExtraction
from forethought.configs.api import ApiConfig
from forethought.configs.parts import EnvironmentConfig, PromptConfig, require
from forethought.evaluation.evaluate import EvaluationSettings
from forethought.evaluation.scripted_rows import ScriptedRows


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
        threads=settings.threads,
        keep=keep,
        scripted=scripted,
        progress=episodes_bar("evaluate"),
    )
