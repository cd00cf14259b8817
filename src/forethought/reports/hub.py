"""A run on the Hugging Face hub: its newest model, settings, and a card with its evaluation."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from huggingface_hub import EvalResult, HfApi, ModelCardData
from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
)

from forethought.configs.contract import AnyConfig
from forethought.configs.file import load_any_config
from forethought.durable import write_text
from forethought.errors import ConfigError, StorageError
from forethought.evaluation.results import Evaluation, EvaluationRow
from forethought.runs.checkpoints import MODEL_DIR, newest_checkpoint
from forethought.runs.run_folder import RunFolder

CARD = "README.md"
SETTINGS = "training_config.yaml"
"""The run's `config.yaml`; under that name the pushed folder would pass for a run."""
_NOT_PUSHED = (HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled, httpx.HTTPError)


def push_run(
    folder: RunFolder, repo: str, *, private: bool = False, endpoint: str | None = None
) -> str:
    """Uploads a run, and returns the address of its repository, which is made where it does not
    exist. The token is the one of `hf auth login`, or HF_TOKEN.

    Args:
        repo: `owner/name`.
        endpoint: another hub than the usual one.

    Raises:
        ConfigError: the repository cannot have this name.
        CheckpointError: the run has no checkpoint, or its newest one is damaged.
        StorageError: the hub refuses, or cannot be reached.
    """
    api = HfApi(endpoint=endpoint, library_name="forethought")
    with TemporaryDirectory() as temporary:
        write_files(folder, Path(temporary), name=repo.rpartition("/")[2])
        try:
            address = api.create_repo(repo, private=private, exist_ok=True)
            api.upload_folder(
                repo_id=repo, folder_path=temporary, commit_message=f"Push {folder.path.name}"
            )
        except HFValidationError as error:
            raise ConfigError(f"repo is {repo!r} — expected owner/name") from error
        except _NOT_PUSHED as error:
            reason = " ".join(str(error).split())[:200]
            raise StorageError(
                f"{repo}: cannot be pushed: {reason} — log in with `hf auth login`, and check "
                "the owner and the network"
            ) from error
    return str(address)


def write_files(folder: RunFolder, target: Path, *, name: str) -> None:
    """What is uploaded: the model as `save_pretrained` wrote it, the run's settings,
    `evaluation.json` where there is one, and the card.

    Raises:
        CheckpointError: the run has no checkpoint, or its newest one is damaged.
        StorageError: something in the run is damaged, or the target cannot be written.
    """
    checkpoint = newest_checkpoint(folder.checkpoints_dir)
    card = model_card(folder, name=name)
    try:
        shutil.copytree(checkpoint / MODEL_DIR, target, dirs_exist_ok=True)
        shutil.copy2(folder.config_path, target / SETTINGS)
        if folder.evaluation_path.exists():
            shutil.copy2(folder.evaluation_path, target / folder.evaluation_path.name)
    except OSError as error:
        raise StorageError(f"{target}: cannot be written: {error.strerror or error}") from error
    write_text(target / CARD, card)


def model_card(folder: RunFolder, *, name: str) -> str:
    """Text of `README.md`: what was trained, how it does on held-out episodes, how to use it.

    Raises:
        StorageError: `evaluation.json` is damaged.
    """
    config = load_any_config(folder.config_path)
    evaluation = None
    if folder.evaluation_path.exists():
        evaluation = Evaluation.from_json(folder.evaluation_path.read_text(encoding="utf-8"))
    algorithm = type(config).__name__.removesuffix("Config")
    header = _header(config, evaluation, name)
    return "\n".join(
        [
            f"---\n{header.to_yaml()}\n---",
            "",
            f"# {name}",
            "",
            f"An agent for {config.environment.id}, trained by {algorithm} with Forethought. "
            f"`{SETTINGS}` holds all settings.",
            "",
            "## Evaluation",
            "",
            *_table(evaluation),
            "",
            "## Use",
            "",
            "```python",
            "import forethought as ft",
            "",
            f'result = ft.evaluate("{name}", environment="{config.environment.id}")',
            "```",
            "",
            "`evaluate` takes this folder as it was downloaded, or its name on the hub.",
            "",
        ]
    )


def _header(config: AnyConfig, evaluation: Evaluation | None, name: str) -> ModelCardData:
    results = None
    if evaluation is not None and evaluation.policy.success_rate is not None:
        results = [
            EvalResult(
                task_type="reinforcement-learning",
                dataset_type=config.environment.id,
                dataset_name=config.environment.id,
                metric_type="success_rate",
                metric_value=round(evaluation.policy.success_rate, 4),
            )
        ]
    tags = ["forethought", "reinforcement-learning", "agent"]
    return ModelCardData(
        library_name="forethought", tags=tags, model_name=name, eval_results=results
    )


def _table(evaluation: Evaluation | None) -> Iterator[str]:
    if evaluation is None:
        yield "Not evaluated: `forethought evaluate RUN` before `forethought push` adds the table."
        return
    seeds = evaluation.seed_range
    how = "greedy" if evaluation.is_greedy else f"temperature {evaluation.temperature:g}"
    yield f"{evaluation.environment_id}, {seeds.stop - seeds.start} held-out episodes, {how}; "
    yield "intervals of 95 %."
    yield ""
    yield "| | success | return | episodes |"
    yield "|---|---|---|---|"
    for row in (evaluation.random, evaluation.policy, evaluation.expert, evaluation.ceiling):
        yield _line(row)


def _line(row: EvaluationRow) -> str:
    rate = "–" if row.success_rate is None else f"{100 * row.success_rate:.1f} %"
    if row.success_interval is not None:
        low, high = row.success_interval
        rate += f" [{100 * low:.1f}, {100 * high:.1f}]"
    mean = "–" if row.mean_return is None else f"{row.mean_return:.2f}"
    if row.return_interval is not None:
        mean += f" [{row.return_interval.low:.2f}, {row.return_interval.high:.2f}]"
    return f"| {row.name} | {rate} | {mean} | {row.episodes or '–'} |"
