"""λ-PPO: reinforcement learning of thoughts and actions (Zhai et al. 2024, RL4VLM).

One iteration: act, compute advantages, update. Equation numbers are the paper's. Advantages come
from a critic or, without one, from other episodes (`advantage`): the rest is the same.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import (
    Sample,
    compute_advantages,
    penalized,
    reference_logprobs,
    rescale_critic,
    summarize_critic,
    to_sample,
    with_ref_logprobs,
)
from forethought.algorithms.ppo.updates import (
    PPOContext,
    Statistics,
    improve,
    recompute_logprobs,
    summarize_updates,
    weigh_mismatch,
)
from forethought.configs.parts import require
from forethought.environments.vector import Runner
from forethought.generation.contract import Policy
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.rollouts.collector import Collected, Collector
from forethought.rollouts.task import Task
from forethought.training.cost import Speed
from forethought.training.engines import acting
from forethought.training.optim import ScheduleSpan
from forethought.training.plan import (
    image_memory,
    lengths_of,
    open_outline,
    plan_lines,
    random_steps,
    rollout_memory,
    rollout_seconds,
)
from forethought.training.reference import Reference, load_reference, start_reference
from forethought.training.run import Existing, Run, advance, open_run
from forethought.training.start import start, training_collector
from forethought.training.summary import (
    Stopwatch,
    steps_played,
    summarize_collection,
    warn_if_all_invalid,
)
from forethought.training.workers import WorkedCollector
from forethought.types import Metric


def train_ppo(config: PPOConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can fix; `OffPolicyError` if sampled and
            recomputed log-probs differ, which would make every ratio wrong.
    """
    with open_run(config, existing) as run:
        slots = run.share_of(config.rollout.num_envs, "rollout.num_envs")
        expected = f"a divisor of the slots of one process ({slots})"
        require(slots % config.group_size == 0, "group_size", config.group_size, expected)
        task, policy = start(config, run, slots=slots, critic=config.has_critic)
        updater = run.make_updater(
            policy,
            config.optimizer,
            total_steps=config.iterations * config.updates_per_iteration,
            critic_learning_rate=config.critic_learning_rate,
        )
        context = PPOContext(policy, updater, config, run, open_reference(policy, config, run))
        bar = run.bar("ppo", config.total_steps)
        with (
            task.runner(
                1 if config.generation.workers else slots, config.environment.workers
            ) as runner,
            acting(policy, updater, config.generation, run) as actor,
        ):
            collector = make_collector(context, task, runner, actor, partial(advance, bar))
            iteration = run.steps_done
            played = run.progress.environment_steps if run.progress else 0
            while config.has_next_iteration(played) and not run.is_stopped:
                watch = Stopwatch()
                collected = collect(collector, config, run)
                watch.lap("collect_s")
                ref_logprobs = ask_reference(collected, context)
                charged = apply_kl_penalty(collected, ref_logprobs, config)
                samples = compute_advantages(charged, config, run)
                rescale_critic(samples, policy, run)
                samples = with_ref_logprobs(samples, ref_logprobs)
                ratio_error, mismatch = 0.0, list[Metric]()
                if not config.scores_in_update:
                    recomputed, ratio_error = recompute_logprobs(samples, context)
                    samples, mismatch = weigh_mismatch(samples, recomputed, context)
                watch.lap("recompute_s")
                steps = steps_played(collected, run)
                span = ScheduleSpan.of_steps(played, steps, config.rollout.steps_per_iteration)
                statistics, error_in_update = improve(samples, context, iteration, span)
                watch.lap("update_s")
                iteration, played = iteration + 1, played + steps
                metrics = [
                    *summarize_collection(collected, run),
                    *summarize_learning(samples, statistics, context),
                    Metric("max_ratio_error", max(ratio_error, error_in_update)),
                    *mismatch,
                    Metric("environment_steps", steps),
                ]
                warn_if_all_invalid(iteration - 1, metrics, run, config.model)
                run.record(iteration, metrics, watch.laps)
                run.keep(collected.trajectories, iteration)
                bar.set_postfix(success=f"{metrics[1].value:.2f}", refresh=False)
                is_last = run.is_stopped or not config.has_next_iteration(played)
                if is_last or iteration % config.checkpoint_every == 0:
                    save(iteration, played, collector, context)
        bar.close()
        return run.folder.path


def summarize_learning(
    samples: Sequence[Sample], statistics: Statistics, context: PPOContext
) -> list[Metric]:
    """What the critic and the updates were like, as numbers for the log."""
    critic = summarize_critic(samples, context.run) if context.config.has_critic else []
    return [*critic, *summarize_updates(statistics, context.config)]


def save(
    iteration: int, played: int, collector: Collector | WorkedCollector, context: PPOContext
) -> None:
    """Writes a checkpoint.

    Args:
        iteration: how many there were.
        played: environment steps of these.
    """
    policy, updater, _, run, reference = context
    run.save(
        policy,
        updater,
        step=iteration,
        cursors=collector.cursors(),
        reference=reference,
        environment_steps=played,
    )


def open_reference(policy: HuggingFacePolicy, config: PPOConfig, run: Run) -> Reference | None:
    """The start of the run, where something holds the policy to it."""
    if not config.has_reference:
        return None
    return load_reference(policy, run.checkpoint) if run.checkpoint else start_reference(policy)


def make_collector(
    context: PPOContext,
    task: Task,
    runner: Runner,
    actor: Policy,
    on_step: Callable[[int], object],
) -> Collector | WorkedCollector:
    """Slots in training episodes, brought back to where a stopped run left them."""
    policy, _, config, run, _ = context
    rollout = config.rollout
    if config.generation.workers:
        collector = WorkedCollector(task, runner, policy, config, run, partial(on_step, 1))
    else:
        collector = training_collector(task, runner, actor, config)(
            bootstraps=config.has_critic,
            group_size=config.group_size,
            first_slot=runner.slots * run.process,
            total_slots=rollout.num_envs,
            on_step=partial(on_step, run.processes),
        )
    if run.progress is not None:
        on_step(run.progress.environment_steps)
        collector.restore(run.progress.cursors[run.process])
    return collector


def collect(collector: Collector | WorkedCollector, config: PPOConfig, run: Run) -> Collected:
    """One iteration's steps.

    A critic says what the rest of an episode is worth: each slot takes equally many steps,
    and goes on next time where it was cut. Workers play whole episodes. Without a critic, too,
    for only whole episodes can be compared:
    every slot plays one, groups side by side, again and again until all processes together
    have the steps. Nothing is cut or left over, the iteration ends some steps late, and which
    episodes it holds depends on their lengths alone, never on timing.
    """
    rollout = config.rollout
    if config.has_critic and isinstance(collector, Collector):
        return collector.collect_steps(rollout.steps_per_iteration // rollout.num_envs)
    everything, steps = Collected([], []), 0
    while steps < rollout.steps_per_iteration:
        played = collector.collect_round()
        everything.trajectories.extend(played.trajectories)
        everything.episodes.extend(played.episodes)
        steps += sum(run.gather([len(trajectory.steps) for trajectory in played.trajectories]))
    return everything


def ask_reference(collected: Collected, context: PPOContext) -> list[list[float]] | None:
    """The reference's log-probs of every step's response, in the order of trajectories and steps;
    None where none is kept."""
    policy, updater, config, run, reference = context
    if reference is None:
        return None
    steps = chain.from_iterable(trajectory.steps for trajectory in collected.trajectories)
    samples = [to_sample(step, advantage=0.0, value_target=0.0) for step in steps]
    return reference_logprobs(samples, policy, updater, reference, config, run)


def apply_kl_penalty(
    collected: Collected, ref_logprobs: list[list[float]] | None, config: PPOConfig
) -> Collected:
    """With `kl_use: reward`, every step is charged for how far its response is from the start."""
    if ref_logprobs is None or config.kl_use != "reward":
        return collected
    charged = penalized(collected.trajectories, ref_logprobs, config.kl_coefficient)
    return collected._replace(trajectories=charged)


def plan_ppo(config: PPOConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    task, encoder, model = open_outline(config)
    rollout, iterations = config.rollout, config.iterations
    rounds = (
        f"{iterations} iterations of {rollout.steps_per_iteration}"
        if config.has_critic
        else f"at most {iterations} iterations of {rollout.steps_per_iteration} or more"
    )
    lengths = lengths_of(random_steps(task), encoder)
    lengths = lengths._replace(completion=float(rollout.sampling.max_new_tokens))
    steps = iterations * rollout.steps_per_iteration
    generated = steps * lengths.completion
    trained = config.epochs * steps * lengths.tokens
    work = [
        f"steps       {steps:,} of the environment: {rounds}, in {rollout.num_envs} at once",
        f"updates     {iterations * config.updates_per_iteration:,}: "
        f"{config.updates_per_iteration} per iteration, of {config.batch_size} steps each",
        f"tokens      at most {generated:,.0f} generated and {trained:,.0f} trained on (per step "
        f"{lengths.prompt:.0f} of prompt, up to {rollout.sampling.max_new_tokens} of completion)",
    ]
    memory = rollout_memory(config, model, lengths)
    memory |= image_memory(lengths.images, rollout.steps_per_iteration)

    def time(speed: Speed) -> str:
        writing = rollout_seconds(config, model, lengths, speed)
        scored = 0 if config.scores_in_update else rollout.steps_per_iteration
        scoring = scored * speed.forward
        learning = scoring + config.updates_per_iteration * speed.update
        return (
            f"an iteration at most about {writing + learning:.2g} s and the environment's steps: "
            f"{writing:.2g} s to write {rollout.steps_per_iteration} responses of full length, "
            f"{learning:.2g} s to score them and learn from them"
        )

    return plan_lines(config, model, lengths, work, memory, time)
