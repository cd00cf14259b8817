"""Step-wise preference optimization of thoughts and actions (InteractiveCOT).

One iteration: act, pair, improve. Equation numbers are the paper's. Two responses to one prompt
are compared by how the episode went on from there; the reference is the model that the run
started from.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.pairing import (
    Collectors,
    Gathered,
    gather,
    make_collectors,
    places,
    stored_pairs,
)
from forethought.algorithms.dpo.samples import (
    DPOContext,
    Known,
    ask_reference,
)
from forethought.algorithms.dpo.updates import Statistics, improve
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.rollouts.collector import Collected
from forethought.rollouts.store import read_shards
from forethought.targets.pairs import Pair
from forethought.training.cost import Speed
from forethought.training.engines import acting
from forethought.training.optim import ScheduleSpan
from forethought.training.plan import (
    first_steps,
    image_memory,
    lengths_of,
    open_outline,
    plan_lines,
    random_steps,
    rollout_memory,
    rollout_seconds,
)
from forethought.training.reference import (
    ANCHOR_FILE,
    Reference,
    load_reference,
    start_reference,
)
from forethought.training.run import Existing, Run, advance, open_run
from forethought.training.start import start
from forethought.training.summary import (
    Stopwatch,
    summarize_actions,
    summarize_collection,
    warn_if_all_invalid,
)
from forethought.types import Metric


def train_dpo(config: DPOConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can fix; `OffPolicyError` if sampled and
            recomputed log-probs differ.
    """
    with open_run(config, existing) as run:
        slots = run.share_of(config.rollout.num_envs, "rollout.num_envs")
        task, policy = start(config, run, slots=slots, critic=False)
        folder = run.checkpoint
        reference = load_reference(policy, folder) if folder else start_reference(policy)
        apc_reference = open_apc_reference(policy, reference, config, run)
        stored = stored_pairs(config, run) if config.data is not None else None
        total = config.iterations * updates_in_an_iteration(config, stored, run)
        updater = run.make_updater(policy, config.optimizer, total_steps=total)
        context = DPOContext(policy, updater, reference, apc_reference, config, run)
        iteration = run.steps_done
        played = run.progress.environment_steps if run.progress else 0
        bar = run.bar("dpo", config.total_steps if stored is None else config.iterations)
        bar.update(played if stored is None else iteration)
        with (
            task.runner(slots if stored is None else 1, config.environment.workers) as runner,
            acting(policy, updater, config.generation, run) as actor,
        ):
            collectors = make_collectors(config, actor, task, runner, run, partial(advance, bar))
            while config.has_next_iteration(iteration, played) and not run.is_stopped:
                watch = Stopwatch()
                gathered = act(collectors, stored, context, iteration)
                watch.lap("collect_s")
                known = ask_reference(draw(gathered.pairs, context, iteration), context)
                watch.lap("reference_s")
                span = schedule_span(config, iteration, played, gathered.steps)
                statistics = improve(known, context, iteration, span)
                # Also without an update: else prompts read before a kill would be read again.
                policy.weights_changed()
                watch.lap("update_s")
                iteration, played = iteration + 1, played + gathered.steps
                record(iteration, gathered, known, statistics, watch, context)
                bar.update(0 if stored is None else 1)
                if config.ref_model_sync_every and iteration % config.ref_model_sync_every == 0:
                    reference.refresh()
                is_last = run.is_stopped or not config.has_next_iteration(iteration, played)
                if is_last or iteration % config.checkpoint_every == 0:
                    save(iteration, played, collectors, context)
        bar.close()
        return run.folder.path


def record(
    iteration: int,
    gathered: Gathered,
    known: Known,
    statistics: Statistics,
    watch: Stopwatch,
    context: DPOContext,
) -> None:
    """Writes an iteration to the log; what was played, and its pairs, to the run folder.

    Args:
        iteration: its number, from 1.
    """
    config, run = context.config, context.run
    metrics = summarize(gathered, known, statistics, context)
    run.record(iteration, metrics, watch.laps)
    warn_if_all_invalid(iteration - 1, metrics, run, config.model)
    if config.data is None:
        run.keep(gathered.collected.trajectories, iteration)
        run.keep_pairs(places(gathered), iteration)


def save(iteration: int, played: int, collectors: Collectors, context: DPOContext) -> None:
    """Writes a checkpoint.

    Args:
        iteration: how many there were.
        played: environment steps of these.
    """
    policy, updater, reference, apc_reference, config, run = context
    run.save(
        policy,
        updater,
        step=iteration,
        cursors=collectors.whole.cursors() if config.data is None else (),
        reference=reference,
        anchor=None if apc_reference is reference else apc_reference,
        environment_steps=played,
    )


def open_apc_reference(
    policy: HuggingFacePolicy, reference: Reference, config: DPOConfig, run: Run
) -> Reference:
    """What APC holds to: the reference, or, where that one moves, the start of the run."""
    if not config.has_apc_reference:
        return reference
    if run.checkpoint is None:
        return start_reference(policy)
    return load_reference(policy, run.checkpoint, ANCHOR_FILE)


def schedule_span(config: DPOConfig, iteration: int, played: int, steps: int) -> ScheduleSpan:
    """What an iteration uses up of it: as much as of the environment steps.

    Args:
        played: steps before it.
        steps: its own.
    """
    if config.data is not None:
        return ScheduleSpan(iteration, iteration + 1)
    return ScheduleSpan.of_steps(played, steps, config.rollout.steps_per_iteration)


def updates_in_an_iteration(config: DPOConfig, stored: list[Pair] | None, run: Run) -> int:
    """Optimizer steps, at most; what the schedule of the learning rate counts in."""
    if stored is None:
        return config.updates_per_iteration
    pairs = sum(run.gather([len(stored)]))
    return -(-pairs // config.batch_size)


def act(
    collectors: Collectors, stored: list[Pair] | None, context: DPOContext, iteration: int
) -> Gathered:
    """This iteration's pairs: played, or those that were stored."""
    if stored is not None:
        return Gathered(Collected([], []), stored)
    return gather(collectors, context.config, context.run, iteration)


def draw(pairs: Sequence[Pair], context: DPOContext, iteration: int) -> list[Pair]:
    """At most so many pairs of all processes as the settings allow, drawn uniformly."""
    config, run = context.config, context.run
    if config.data is not None:
        return list(pairs)
    total, first = sum(run.gather([len(pairs)])), run.offset(len(pairs))
    order = np.random.default_rng([config.seed, iteration, 1]).permutation(total)
    chosen = sorted(order[: config.pairs_per_iteration])
    return [pairs[index - first] for index in chosen if first <= index < first + len(pairs)]


def summarize(
    gathered: Gathered, known: Known, statistics: Statistics, context: DPOContext
) -> list[Metric]:
    """An iteration as numbers for the log."""
    run, is_played = context.run, context.config.data is None
    margins = run.gather([pair.margin for pair in gathered.pairs])
    return [
        *(summarize_collection(gathered.collected, run) if is_played else []),
        *(summarize_actions(gathered.collected, run) if is_played else []),
        Metric("pairs", len(margins)),
        Metric("pairs_used", sum(run.gather([len(known.samples)]))),
        Metric("score_margin", float(np.mean(margins)) if margins else float("nan")),
        *(Metric(name, value) for name, value in statistics._asdict().items()),
        *([Metric("max_ratio_error", known.deviation)] if is_played else []),
        *known.mismatch,
    ]


def plan_dpo(config: DPOConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    task, encoder, model = open_outline(config)
    data = config.data
    steps = random_steps(task) if data is None else first_steps(read_shards(Path(data)))
    rollout = config.rollout
    lengths = lengths_of(steps, encoder)._replace(completion=float(rollout.sampling.max_new_tokens))
    memory = rollout_memory(config, model, lengths)
    if not config.lora.components:
        memory["reference"] = 4 * model.trained
    memory |= image_memory(lengths.images, rollout.steps_per_iteration)
    work = _played_work(config) if data is None else _stored_work(config)
    # Each response counts once, however many pairs it is in.
    steps_played = rollout.steps_per_iteration
    rows, scored = (
        2 * pairs if data is not None else min(2 * pairs, steps_played)
        for pairs in (config.batch_size, config.pairs_per_iteration)
    )

    def time(speed: Speed) -> str:
        writing = rollout_seconds(config, model, lengths, speed)
        models = 3 if config.has_apc_reference else 2
        learning = models * scored * speed.forward + config.updates_per_iteration * speed.update
        return (
            f"an iteration at most about {writing + learning:.2g} s and the environment's steps: "
            f"{writing:.2g} s to write {steps_played} responses of full length, "
            f"{learning:.2g} s to score those in pairs and learn from them"
        )

    return plan_lines(
        config,
        model,
        lengths,
        [_loss_line(config), *work],
        memory,
        time if data is None else None,
        rows=rows,
    )


def _loss_line(config: DPOConfig) -> str:
    how = f"objective   {config.loss_type}, β {config.beta:g}"
    if config.consistency_coefficient:
        how += f", κ {config.consistency_coefficient:g}"
    return how


def _stored_work(config: DPOConfig) -> list[str]:
    return [
        f"pairs       {config.pairing}, those in {config.data}, {config.epochs} passes over "
        f"all of them, {config.batch_size} per update",
    ]


def _played_work(config: DPOConfig) -> list[str]:
    rollout, iterations = config.rollout, config.iterations
    return [
        f"steps       {config.total_steps:,} of the environment, beyond which only the last round "
        f"may go: at most {iterations} rounds of {rollout.steps_per_iteration} or more, in "
        f"{rollout.num_envs} at once",
        f"pairs       {config.pairing}, at most {config.pairs_per_iteration} per iteration",
        f"updates     at most {iterations * config.updates_per_iteration:,}: "
        f"{config.updates_per_iteration} per iteration, of {config.batch_size} pairs each",
    ]
