"""A run in phases: one after the other, each with a model, an optimizer and a schedule of its own.

All of them learn from the same stored episodes. A phase that was stopped goes on at its newest
checkpoint; the first checkpoint of a later one is written before its first update, since what
the phase before it trained is not trained any more.
"""

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Generic, NamedTuple, TypeVar

from torch import Tensor

from forethought.configs.contract import OfflineConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.offline.dataset import load_episodes, shuffled_batch
from forethought.offline.episodes import Episode
from forethought.training.optim import Updater
from forethought.training.run import Run
from forethought.training.state import Trainable
from forethought.types import Metric

PhaseT = TypeVar("PhaseT", bound=str)


def read_episodes(
    config: OfflineConfig,
    policy: HuggingFacePolicy,
    run: Run,
    is_known: Callable[[Episode], bool],
) -> list[Episode]:
    """The data as sequences of tokens, with a progress bar.

    Args:
        is_known: whether an episode has anything from which values could be learned.

    Raises:
        ConfigError: no episode has.
        StorageError: a shard is refused.
    """
    with run.bar("reading", None) as bar:
        return load_episodes(config.data, policy, is_known, on_episode=bar.update)


TARGET_SUMS = ("target", "actions", "start_value", "return", "episodes")
"""What is summed up of targets, for `target_metrics`; an action is a token or a whole response."""


def target_metrics(sums: Tensor) -> list[Metric]:
    """Means of targets over actions, and over episodes of what each is worth at its start and of
    what it brought in the data.

    Args:
        sums: `TARGET_SUMS`, over all processes.
    """
    target, actions, start, total, episodes = sums.tolist()
    return [
        Metric("target_mean", target / max(1.0, actions)),
        Metric("start_value", start / episodes),
        Metric("data_return", total / episodes),
    ]


class Stage(NamedTuple, Generic[PhaseT]):
    """A phase, and which of the run's updates belong to it."""

    phase: PhaseT
    first: int
    updates: int


def stages_of(
    passes: Iterable[tuple[PhaseT, float]], *, episodes: int, batch_size: int
) -> list[Stage[PhaseT]]:
    """Phases with their updates, at least one each.

    Args:
        passes: how often each phase goes over the data; one that does not is left out.
    """
    stages: list[Stage[PhaseT]] = []
    first = 0
    for phase, epochs in passes:
        if epochs > 0:
            updates = max(1, round(epochs * episodes / batch_size))
            stages.append(Stage(phase, first, updates))
            first += updates
    return stages


class Phases(NamedTuple, Generic[PhaseT]):
    """What an algorithm does in its phases."""

    name: str
    """Label of the progress bar."""
    models: Trainable
    """Its module is what the present phase trains."""
    begin: Callable[[PhaseT], None]
    """Makes ready what the phase works with."""
    update: Callable[[Sequence[Episode], PhaseT, Updater], list[Metric]]
    """One optimizer step on a global batch; the first measure is its loss."""
    head_learning_rate: float | None = None
    """Highest rate of value heads; None: the model's."""


def run_phases(
    phases: Phases[PhaseT],
    stages: Sequence[Stage[PhaseT]],
    episodes: Sequence[Episode],
    config: OfflineConfig,
    run: Run,
) -> None:
    """Does what is left of all stages."""
    models, total = phases.models, sum(stage.updates for stage in stages)
    # Asked once: the checkpoint that tells it is deleted when there are newer ones.
    done = run.steps_done
    bar = run.bar(phases.name, total)
    bar.update(done)
    for stage in stages:
        if done >= stage.first + stage.updates:
            continue
        phases.begin(stage.phase)
        updater = run.make_updater(
            models,
            config.optimizer,
            total_steps=stage.updates,
            critic_learning_rate=phases.head_learning_rate,
            is_resumed=done >= stage.first,
        )
        if updater.steps == 0 and stage.first > 0:
            run.save(models, updater, step=stage.first)
        while updater.steps < stage.updates and not run.is_stopped:
            started = perf_counter()
            batch = choose_batch(episodes, stage, updater.steps, config)
            measures = phases.update(batch, stage.phase, updater)
            seconds, tokens = perf_counter() - started, sum(e.tokens for e in batch)
            step = stage.first + updater.steps
            speed = [Metric("update_s", seconds), Metric("tokens_per_s", tokens / seconds)]
            run.record(step, measures, speed)
            bar.update()
            bar.set_postfix(loss=f"{measures[0].value:.4f}", refresh=False)
            is_due = run.is_stopped or step % config.checkpoint_every == 0
            # A phase's last checkpoint is the first of the next one.
            if (is_due and updater.steps < stage.updates) or step == total:
                run.save(models, updater, step=step)
        updater.release()
        if run.is_stopped and updater.steps < stage.updates:
            break
    bar.close()


def choose_batch(
    episodes: Sequence[Episode], stage: Stage[PhaseT], number: int, config: OfflineConfig
) -> list[Episode]:
    """Which episodes a stage's n-th update learns from."""
    chosen = shuffled_batch(
        seeds=[config.seed, stage.first],
        examples=len(episodes),
        batch_size=config.batch_size,
        number=number,
    )
    return [episodes[index] for index in chosen]
