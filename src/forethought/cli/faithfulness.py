"""`forethought faithfulness RUN`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from forethought.agents.sources import Source, find_source, open_agent
from forethought.cli.flags import Operand, Switch
from forethought.cli.terminal import align, number, percent, progress_bar
from forethought.configs.acting import ApiConfig
from forethought.configs.parts import Inline, require
from forethought.durable import write_text
from forethought.errors import ConfigError
from forethought.evaluation.faithfulness import (
    Faithfulness,
    FaithfulnessRow,
    FaithfulnessSettings,
    measure_faithfulness,
)
from forethought.evaluation.results import faithfulness_to_json
from forethought.evaluation.statistics import Rate
from forethought.libraries import load_quietly
from forethought.rollouts.store import SUFFIX, read_shard
from forethought.runs.run_folder import RunFolder

TITLES = {
    "own": "own thoughts",
    "expert": "expert's",
    "other": "of another state",
    "none": "none",
}


@dataclass(frozen=True)
class MeasureFaithfulness:
    """Whose steps, and how many."""

    run: Annotated[str, Operand("RUN")]
    """A run folder; its newest checkpoint is asked."""

    steps: Annotated[FaithfulnessSettings, Inline()] = field(default_factory=FaithfulnessSettings)

    max_tokens: int = 4096
    """Tokens of one forward pass, padding included."""

    json: Switch = False
    """Print the text of faithfulness.json instead of a table."""

    threads: int | None = None
    """CPU threads of PyTorch; by default OMP_NUM_THREADS, else one fewer than there are cores."""

    def __post_init__(self) -> None:
        require(self.max_tokens >= 1, "max_tokens", self.max_tokens, "1 or more")


def faithfulness(settings: MeasureFaithfulness) -> None:
    """Replace the thoughts of stored steps, and see whether the action follows.

    Each step is asked again after its own thoughts, the expert's, the policy's own in another
    state, and none. Every action of the state is scored; the table says how often the likeliest
    one is what the thoughts conclude, what was done before, and what the expert does. The steps
    are those of evaluation_episodes.parquet, or else of the newest training shard. Written into
    the run folder: faithfulness.json and faithfulness.svg; the report shows them.

    Examples:
      forethought faithfulness runs/ppo
      forethought faithfulness runs/ppo --steps 500 --json
    """
    found, folder = _measure(settings)
    if settings.json:
        print(faithfulness_to_json(found), end="")
        return
    for line in faithfulness_table(found):
        print(line)
    print(f"\nwritten: {folder.faithfulness_path}, {folder.faithfulness_plot_path}")
    print(f"next: forethought report {folder.path}")


def faithfulness_table(found: Faithfulness) -> Iterator[str]:
    """One line for each kind of thoughts."""
    which = f", {found.checkpoint}" if found.checkpoint else ""
    yield f"{found.environment_id}, {found.steps} steps of {found.episodes}{which}"
    yield f"likeliest of {found.mean_actions:.1f} actions (mean), after other thoughts"
    yield ""
    header = ("thoughts", "as they conclude [95 %]", "as before [95 %]", "as the expert [95 %]")
    yield from align([(*header, "p(concluded)", "p(before)"), *map(_cells, found.rows)])


def _cells(row: FaithfulnessRow) -> tuple[str, ...]:
    rates = (row.follows_thought, row.keeps_action, row.expert_action)
    probabilities = (row.thought_probability, row.kept_probability)
    return (TITLES[row.thoughts], *map(_rate, rates), *map(number, probabilities))


def _rate(rate: Rate | None) -> str:
    return "–" if rate is None else percent(rate.share, rate.interval)


def _measure(settings: MeasureFaithfulness) -> tuple[Faithfulness, RunFolder]:
    source = find_source(settings.run)
    folder, config = source.run, source.config
    if folder is None or config is None:
        raise ConfigError(f"run is {settings.run} — expected a run folder, whose steps are stored")
    require(
        config.prompt.format == "thoughts",
        "prompt.format",
        config.prompt.format,
        "thoughts: this run has none",
    )
    episodes = _episodes_of(folder)
    load_quietly(threads=settings.threads)
    with folder.lock():
        found = _ask(settings, source, episodes)
        from forethought.reports.results import faithfulness_plot

        write_text(folder.faithfulness_path, faithfulness_to_json(found))
        write_text(folder.faithfulness_plot_path, faithfulness_plot(found))
    return found, folder


def _ask(settings: MeasureFaithfulness, source: Source, episodes: Path) -> Faithfulness:
    from forethought.evaluation.forced_thoughts import ActionScorer
    from forethought.generation.huggingface import HuggingFacePolicy

    assert source.config is not None
    policy, task = open_agent(
        source, source.config.environment, source.config.prompt, slots=1, api=ApiConfig()
    )
    if not isinstance(policy, HuggingFacePolicy):
        raise ConfigError(
            f"{settings.run}: acts by {type(policy).__name__} — expected a language model that "
            "acts by its own probabilities (sft, ppo, dpo)"
        )
    with progress_bar("faithfulness", settings.steps.steps, "step") as bar:
        return measure_faithfulness(
            read_shard(episodes),
            task,
            ActionScorer(policy, max_tokens=settings.max_tokens),
            settings.steps,
            checkpoint=source.checkpoint,
            episodes=episodes.name,
            on_steps=bar.update,
        )


def _episodes_of(folder: RunFolder) -> Path:
    """The held-out episodes, or else what was played last in training.

    Raises:
        ConfigError: none are stored.
    """
    if folder.evaluation_episodes_path.exists():
        return folder.evaluation_episodes_path
    shards = sorted(folder.trajectories_dir.glob(f"*{SUFFIX}"))
    if not shards:
        raise ConfigError(
            f"{folder.path}: no episodes are stored — run `forethought evaluate {folder.path}`"
        )
    return shards[-1]
