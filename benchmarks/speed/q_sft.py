"""Q-SFT's second phase beside plain supervised fine-tuning, on the same rows.

Fine-tuning puts every token through the model forwards and backwards; Q-SFT puts it through the
behavior policy and the slow copy as well, forwards alone, and moves the slow copy. Both take
the same optimizer steps on the same episodes of Wordle's expert, of which each is one row.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from benchmarks.speed.contract import BenchmarkResult, compare, side_by_side
from benchmarks.speed.preparation import one_thread
from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import Phase, QSFTContext, start_context
from forethought.algorithms.q_sft.train import update
from forethought.configs.parts import ComputeConfig, EnvironmentConfig, PromptConfig
from forethought.offline.episodes import Episode
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import open_task
from forethought.training.optim import Updater
from forethought.training.run import Run, open_run

BATCH = 32
PAIRS = 7
PROMPT = PromptConfig(format="action_only")
ENVIRONMENT = EnvironmentConfig("Wordle")


def measure_q_sft(*, batch: int = BATCH, pairs: int = PAIRS) -> Iterator[BenchmarkResult]:
    """Training tokens per second, prompts and replies included, on one core.

    Args:
        batch: episodes of an optimizer step.
        pairs: of steps, one of either kind right after the other.
    """
    with one_thread(), TemporaryDirectory() as folder:
        config = QSFTConfig(
            data=str(_write_episodes(Path(folder) / "data", batch * (pairs + 1))),
            output=str(Path(folder) / "run"),
            batch_size=batch,
            environment=ENVIRONMENT,
            prompt=PROMPT,
            compute=ComputeConfig(threads=1),
        )
        with open_run(config, "refuse") as run:
            yield _measure(config, run, pairs)


class _Trained(NamedTuple):
    phase: Phase
    updater: Updater
    learner: QSFTContext


def _measure(config: QSFTConfig, run: Run, pairs: int) -> BenchmarkResult:
    values, imitation = _begun("likelihood", config, run), _begun("behavior", config, run)
    episodes = values.learner.data.episodes
    batches = [
        episodes[first : first + config.batch_size]
        for first in range(0, len(episodes), config.batch_size)
    ]
    # The first step of either makes what the others find: optimizer states, memory.
    _speed(values, batches[0])
    _speed(imitation, batches[0])
    measured = [
        side_by_side(
            lambda batch=batch: _speed(values, batch),
            lambda batch=batch: _speed(imitation, batch),
        )
        for batch in batches[1 : pairs + 1]
    ]
    return compare("q_sft/training beside sft", "tokens/s", measured)


def _begun(phase: Phase, config: QSFTConfig, run: Run) -> _Trained:
    learner = start_context(config, run)
    learner.models.begin(phase)
    updater = run.make_updater(learner.models, config.optimizer, total_steps=1000)
    return _Trained(phase, updater, learner)


def _speed(trained: _Trained, batch: Sequence[Episode]) -> float:
    started = perf_counter()
    update(batch, *trained)
    return sum(episode.tokens for episode in batch) / (perf_counter() - started)


def _write_episodes(folder: Path, count: int) -> Path:
    """Of the expert, whose returns differ with the hidden word."""
    folder.mkdir()
    task = open_task(ENVIRONMENT, PROMPT, default_image_size=None)
    seeds = (episode_seed(Split.DEMONSTRATION, 0, number) for number in range(count))
    answer = expert_response("action_only")
    episodes = play(task.id, task.factory(), task.prompter, answer, seeds)
    write_shard(folder / "episodes.parquet", list(islice(episodes, count)))
    return folder
