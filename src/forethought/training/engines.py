"""Who writes a run's responses, its own policy or engines elsewhere in its name, and whether they
have the log-probs that the trained weights give them."""

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from forethought.chat.remote import RemotePolicy
from forethought.configs.acting import GenerationConfig
from forethought.configs.parts import ComputeConfig, require
from forethought.errors import OffPolicyError
from forethought.generation.contract import Policy
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.generation.published import Publisher, Weights
from forethought.rollouts.board import Board
from forethought.training.optim import Updater
from forethought.training.run import Run
from forethought.types import Metric

RATIO_TOLERANCE = 1e-3
"""In fp32, before the first update of an iteration, every ratio is 1 within this."""
KL_TOLERANCE = 0.05
"""Nats per token between engine and trainer, with equal weights. llama.cpp, with weights of four
bits, is off by 0.004; an engine that is behind by a small update is within it, and is not found."""


def require_on_policy(
    max_ratio_error: float, compute: ComputeConfig, generation: GenerationConfig
) -> None:
    """Refuses responses whose recomputed log-probs are not those that were sampled. bf16 and
    engines elsewhere may round as they like.

    Args:
        max_ratio_error: the largest |ratio - 1| before the first update.

    Raises:
        OffPolicyError: prompt, image, ids or weights are not those of the rollout.
    """
    is_own = compute.precision == "fp32" and not generation.engine
    if is_own and max_ratio_error > RATIO_TOLERANCE:
        raise OffPolicyError(
            f"before the first update a ratio is off 1 by {max_ratio_error:.2g} — expected at most "
            f"{RATIO_TOLERANCE:g}: the recomputed log-probs are not those that were sampled"
        )


def measure_mismatch(
    differences: list[float], generation: GenerationConfig, run: Run
) -> list[Metric]:
    """How far engines' log-probs are from the trainer's, by which engines that have other weights
    than they say are found out. Where responses may be stale, or are weighted by what engine and
    trainer differ in, nothing is refused.

    Args:
        differences: log π - log π_engine of every token of this process, nats.

    Returns:
        Mean and largest difference, and the mean k3 estimate of KL(π_engine || π), nats per token,
        over all processes. Without engines, no metric.

    Raises:
        OffPolicyError: they differ too much for rounding.
    """
    if not generation.engine:
        return []
    all_N = np.array(run.gather(differences))
    if len(all_N) == 0:  # No process learns anything from this iteration.
        all_N = np.array([np.nan])
    engine_kl = float((np.expm1(all_N) - all_N).mean())
    may_differ = generation.max_staleness > 0 or generation.importance_cap is not None
    if engine_kl > KL_TOLERANCE and not may_differ:
        raise OffPolicyError(
            f"engines and trainer differ by {engine_kl:.2g} nats per token — expected at most "
            f"{KL_TOLERANCE:g}: an engine has other weights than it says; nothing was learned from "
            "its responses. Restart the engines, then go on with --resume; if their arithmetic "
            "differs so much, train PPO with --generation.importance-cap 2"
        )
    return [
        Metric("engine_mismatch_mean", float(np.abs(all_N).mean())),
        Metric("engine_mismatch_max", float(np.abs(all_N).max())),
        Metric("engine_kl", engine_kl),
    ]


@contextmanager
def acting(
    policy: HuggingFacePolicy, updater: Updater, config: GenerationConfig, run: Run
) -> Generator[Policy]:
    """The policy itself; with engines, one whose responses they write.

    New weights are published before the first request that follows an update, so that a training
    loop need not know of it.

    Args:
        updater: has the policy's weights, whole or in shards.

    Raises:
        ConfigError: workers, and several processes to learn from their episodes.
    """
    if not config.engine:
        yield policy
        return
    if config.workers:
        require(run.processes == 1, "generation.workers", True, "false with several processes")
    publisher = Publisher(
        policy,
        run.folder.published_dir,
        keep=config.max_staleness + 1,
        shared=config.shared_folder,
    )
    remote = RemotePolicy(
        policy.encoder,
        config,
        published=_Together(publisher, policy, updater, run),
        critic=None if policy.module.value_head is None else policy,
        version=lambda: policy.version,
    )
    try:
        yield remote
        if config.workers:  # A run that was stopped may go on: its workers wait for that.
            Board(run.folder.work_dir).close()
    finally:
        remote.close()


class _Together:
    """What is published, when called: the first process publishes, and all say the same."""

    def __init__(
        self, publisher: Publisher, policy: HuggingFacePolicy, updater: Updater, run: Run
    ) -> None:
        self._publisher = publisher
        self._policy = policy
        self._updater = updater
        self._run = run
        self._known: tuple[Weights, ...] = ()

    def __call__(self) -> tuple[Weights, ...]:
        """Of all processes at once, where there are new weights.

        Raises:
            StorageError: the disk refuses.
        """
        if not self._known or self._known[0].version != self._policy.version:
            run = self._run
            with self._updater.whole_on_first_process():
                mine = self._publisher.current() if run.process == 0 else ()
            self._known = run.gather([mine])[0]
        return self._known
