"""Whole PPO, in environment steps per second, beside the plain loop (`bench.plain_ppo`).

Both sides start from one model, which is first taught to answer, for one that was not
answers with as many tokens as it is let. Before anything is timed, one batch of answers is
scored, and its gradient computed, by both: they must agree. Then both learn in turn, an
iteration each, with as many environment steps, epochs and optimizer steps; the first
iteration of either is not counted. Nothing but collecting, rescoring and updating is
timed: neither side writes logs or checkpoints.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.speed.contract import BenchmarkResult, Pair, compare, side_by_side
from benchmarks.speed.plain_ppo import PlainPolicy, PlainUpdater, plain_loss, plain_scores
from benchmarks.speed.preparation import one_thread, train_briefly
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Sample, compute_advantages, rescale_critic
from forethought.algorithms.ppo.train import collect, make_collector
from forethought.algorithms.ppo.updates import (
    BatchSize,
    PPOContext,
    Totals,
    improve,
    micro_losses,
    recompute_logprobs,
)
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.environments.vector import Runner
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.rollouts.collector import Collected, Collector
from forethought.rollouts.seeding import Split
from forethought.rollouts.task import Task
from forethought.training.optim import ScheduleSpan
from forethought.training.run import Run, open_run
from forethought.training.start import start
from forethought.training.summary import Stopwatch

ENVIRONMENTS = ("NumberLine", "EZPoints")
"""One in which states, and so prompts, come again and again, and one in which few do."""
PHASES = ("collect", "recompute", "update")
PAIRS = 3
STEPS = 256
SLOTS = 32
UPDATES_BEFORE = 120
LOGPROB_TOLERANCE = 1e-4
"""Nats, of any token."""
GRADIENT_TOLERANCE = 1e-3
"""Of the gradient's length."""


def measure_ppo(
    *,
    environments: Sequence[str] = ENVIRONMENTS,
    pairs: int = PAIRS,
    steps: int = STEPS,
    slots: int = SLOTS,
    updates_before: int = UPDATES_BEFORE,
) -> Iterator[BenchmarkResult]:
    """Every environment, on one core.

    Args:
        pairs: iterations of either side that count.
        steps: environment steps of an iteration, a multiple of `slots`.
        slots: answers that ours generates at a time; the plain loop generates one.
        updates_before: of supervised fine-tuning.

    Raises:
        RuntimeError: both sides score or differentiate differently.
    """
    with one_thread():
        for environment in environments:
            with TemporaryDirectory() as folder:
                yield from _measure(
                    environment, Path(folder), pairs, (steps, slots), updates_before
                )


def _measure(
    name: str, folder: Path, pairs: int, size: tuple[int, int], updates_before: int
) -> Iterator[BenchmarkResult]:
    model = train_briefly(EnvironmentConfig(id=name), folder / "sft", updates_before)
    config = _ppo_config(name, folder / "ppo", model, *size)
    with open_run(config, "refuse") as run:
        task, policy = start(config, run, slots=config.rollout.num_envs, critic=True)
        # From the same files with the same seed: the same weights.
        plain_policy = start(config, run, slots=1, critic=True).policy
        with task.runner(config.rollout.num_envs, 0) as many, task.runner(1, 0) as one:
            ours = _Ours(policy, config, run, task, many)
            plain = _Plain(plain_policy, config, run, task, one)
            yield from check(ours.context, compute_advantages(ours.collect(), config, run))
            ours.iterate()
            plain.iterate()
            ours.laps.clear()
            plain.laps.clear()
            seconds = [side_by_side(ours.timed, plain.timed) for _ in range(pairs)]
    speeds = [pair.converted(lambda s: size[0] / s) for pair in seconds]
    yield compare(f"ppo/{name}/whole", "steps/s", speeds)
    yield from _phases(f"ppo/{name}", ours.laps, plain.laps)


def _phases(name: str, ours: "list[Lap]", plain: "list[Lap]") -> Iterator[BenchmarkResult]:
    """Where the time goes, and how long answers were: equally long on both sides, or the
    comparison is of little worth."""
    for index, phase in enumerate(PHASES):
        pairs = [
            Pair(mine.seconds[index], theirs.seconds[index])
            for mine, theirs in zip(ours, plain, strict=True)
        ]
        if phase == "recompute":  # the plain loop scores while it collects
            alone = median(pair.ours for pair in pairs)
            yield BenchmarkResult(f"{name}/{phase}", alone, "s", None, None)
        else:
            yield compare(f"{name}/{phase}", "s", pairs, less_is_better=True)
    whole = sum(sum(lap.seconds) for lap in ours), sum(sum(lap.seconds) for lap in plain)
    for index, phase in enumerate(PHASES):
        shares = [
            100 * sum(lap.seconds[index] for lap in laps) / total
            for laps, total in zip((ours, plain), whole, strict=True)
        ]
        yield BenchmarkResult(f"{name}/share of {phase}", shares[0], "%", shares[1], None)
    lengths = [median(lap.completion_tokens for lap in laps) for laps in (ours, plain)]
    yield BenchmarkResult(f"{name}/answer", lengths[0], "tokens", lengths[1], None)


# --- equal results -----------------------------------------------------------------------


def check(context: PPOContext, samples: Sequence[Sample]) -> Iterator[BenchmarkResult]:
    """Scores of the same answers, and the gradient of the same batch, ours and plain.

    Raises:
        RuntimeError: they are further apart than rounding explains.
    """
    name = f"ppo/{context.config.environment.id}"
    batch, _ = recompute_logprobs(samples, context)
    logprobs = _largest_gap(context, batch)
    require_equal(f"{name}: log-probs", logprobs, LOGPROB_TOLERANCE)
    yield BenchmarkResult(f"{name}/log-probs apart", logprobs, "nats", None, None)
    gradient = _gradient_gap(context, batch)
    require_equal(f"{name}: gradients", gradient, GRADIENT_TOLERANCE)
    yield BenchmarkResult(f"{name}/gradients apart", gradient, "of length", None, None)


@torch.no_grad()
def _largest_gap(context: PPOContext, batch: Sequence[Sample]) -> float:
    """Between the log-probs that ours and the plain loop find for any token, nats."""
    policy, _, config, _, _ = context
    gaps = [
        plain_scores(
            policy, sample.example, temperature=config.rollout.sampling.temperature
        ).logprobs_T
        - torch.tensor(sample.old_logprobs, device=policy.device)
        for sample in batch
    ]
    return float(torch.cat(gaps).abs().max())


def _gradient_gap(context: PPOContext, batch: Sequence[Sample]) -> float:
    """Length of the difference of both gradients as a part of the gradient's length."""
    policy, updater, config, _, _ = context
    policy.module.without_dropout()
    whole = BatchSize(len(batch), sum(len(sample.old_logprobs) for sample in batch))
    for part in micro_losses(batch, whole, Totals(), context):
        part().backward()
    ours = _take_gradient(updater.trained)
    for sample in batch:
        (plain_loss(policy, sample, config) / len(batch)).backward()
    plain = _take_gradient(updater.trained)
    return float((ours - plain).norm() / plain.norm())


def _take_gradient(parameters: Mapping[str, Tensor]) -> Tensor:
    parts: list[Tensor] = []
    for parameter in parameters.values():
        gradient = parameter.grad
        parts.append((torch.zeros_like(parameter) if gradient is None else gradient).flatten())
        parameter.grad = None
    return torch.cat(parts)


def require_equal(what: str, gap: float, tolerance: float) -> None:
    """Refuses to compare the speed of two sides that do not compute the same.

    Raises:
        RuntimeError: they are further apart than the tolerance, or not a number.
    """
    if not gap <= tolerance:
        raise RuntimeError(
            f"{what} of ours and of the plain loop are {gap:.2g} apart — expected at most "
            f"{tolerance:g}: what is not equal is not compared"
        )


# --- both sides --------------------------------------------------------------------------


class Lap(NamedTuple):
    """One iteration."""

    seconds: tuple[float, ...]
    """In the order of `PHASES`."""
    completion_tokens: float
    """The mean."""


class _Ours:
    """The trainer's own functions, in its order."""

    def __init__(
        self, policy: HuggingFacePolicy, config: PPOConfig, run: Run, task: Task, runner: Runner
    ) -> None:
        updater = run.make_updater(
            policy,
            config.optimizer,
            total_steps=config.updates_per_iteration,  # the rates are constant
            critic_learning_rate=config.critic_learning_rate,
        )
        self.context = PPOContext(policy, updater, config, run)
        self.laps: list[Lap] = []
        self._collector = make_collector(self.context, task, runner, policy, lambda _: None)

    def collect(self) -> Collected:
        return collect(self._collector, self.context.config, self.context.run)

    def iterate(self) -> None:
        watch = Stopwatch()
        collected = self.collect()
        watch.lap("collect")
        samples = compute_advantages(collected, self.context.config, self.context.run)
        rescale_critic(samples, self.context.policy, self.context.run)
        recomputed, _ = recompute_logprobs(samples, self.context)
        watch.lap("recompute")
        number = len(self.laps)
        improve(recomputed, self.context, number, ScheduleSpan(number, number + 1))
        watch.lap("update")
        self.laps.append(_lap(watch, collected))

    def timed(self) -> float:
        self.iterate()
        return sum(self.laps[-1].seconds)


class _Plain:
    """The same with one environment and one answer at a time."""

    def __init__(
        self, policy: HuggingFacePolicy, config: PPOConfig, run: Run, task: Task, runner: Runner
    ) -> None:
        rollout = config.rollout
        self._config = replace(config, rollout=replace(rollout, num_envs=1))
        self._run = run
        self._policy = policy
        self._updater = PlainUpdater(policy, config)
        self.laps: list[Lap] = []
        self._collector = Collector(
            environment_id=task.id,
            runner=runner,
            policy=PlainPolicy(policy),
            prompter=task.prompter,
            sampling=rollout.sampling,
            on_invalid=rollout.on_invalid,
            split=Split.TRAINING,
            run_seed=config.seed,
            bootstraps=True,
        )

    def iterate(self) -> None:
        watch = Stopwatch()
        collected = collect(self._collector, self._config, self._run)
        watch.lap("collect")
        samples = compute_advantages(collected, self._config, self._run)
        rescale_critic(samples, self._policy, self._run)
        watch.lap("recompute")
        self._updater.improve(samples, len(self.laps))
        watch.lap("update")
        self.laps.append(_lap(watch, collected))

    def timed(self) -> float:
        self.iterate()
        return sum(self.laps[-1].seconds)


def _lap(watch: Stopwatch, collected: Collected) -> Lap:
    lengths = [
        len(step.completion.token_ids)
        for trajectory in collected.trajectories
        for step in trajectory.steps
    ]
    return Lap(tuple(lap.value for lap in watch.laps), sum(lengths) / len(lengths))


# --- settings ----------------------------------------------------------------------------


def _ppo_config(environment: str, output: Path, model: Path, steps: int, slots: int) -> PPOConfig:
    return PPOConfig(
        model=str(model),
        output=str(output),
        total_steps=steps,
        gamma=0.5,
        value_coefficient=0.05,
        value_clip=None,
        epochs=2,
        batch_size=min(128, steps),
        environment=EnvironmentConfig(id=environment),
        optimizer=OptimizerConfig(schedule="constant"),
        rollout=RolloutConfig(
            num_envs=slots,
            steps_per_iteration=steps,
            sampling=SamplingConfig(temperature=1.0, max_new_tokens=48),
            on_invalid="penalize",
        ),
        compute=ComputeConfig(threads=1),
    )
