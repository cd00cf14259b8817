"""Offline ArCHer: a critic of whole responses, and a policy that prefers the better ones (Zhou et
al. 2024).

First the policy clones the data's behavior. Then a copy of it learns the values of whole responses,
by implicit Q-learning in the MDP of `critic.py`. Then the policy clones once more, each response
weighted by its advantage. What acts is that policy.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.archer.critic import (
    ArcherContext,
    CompletionBatch,
    completion_batches,
    learn_critic,
    target_values,
)
from forethought.losses.cross_entropy import advantage_weighted_loss
from forethought.offline.episodes import Episode
from forethought.runs.checkpoints import MODEL_DIR
from forethought.targets.token_values import advantage_weights, effective_share
from forethought.training.behavior_cloning import clone_episodes
from forethought.training.optim import Updater
from forethought.training.phases import Phases, Stage, read_episodes, run_phases, stages_of
from forethought.training.plan import head_memory, plan_offline
from forethought.training.run import Existing, open_run
from forethought.training.start import start
from forethought.types import Metric
from forethought.value_guided.models import PolicyWithValues

CRITIC = "critic"
"""Folder of the critic inside the policy's own."""

Phase = Literal["behavior", "critic", "actor"]
"""What is trained: the policy by behavior cloning, the values of responses, the policy by these."""


def train_archer(config: ArcherConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can fix: settings, model, data, disk.
    """
    with open_run(config, existing, can_shard=False) as run:
        policy = start(config, run, slots=1, critic=False).policy
        models = PolicyWithValues(policy, policy_folder="", values_folder=CRITIC, acting=None)
        if run.checkpoint is not None:
            models.load_values(run.checkpoint / MODEL_DIR)
        episodes = read_episodes(config, policy, run, lambda one: one.known_completions > 0)
        context = ArcherContext(models, config, run)
        phases = Phases(
            "archer",
            models,
            begin=partial(begin, context=context),
            update=partial(update, context=context),
            head_learning_rate=config.head_learning_rate,
        )
        run_phases(phases, plan_stages(config, len(episodes)), episodes, config, run)
        return run.folder.path


def plan_stages(config: ArcherConfig, episodes: int) -> list[Stage[Phase]]:
    """The phases with their updates; at least one each."""
    passes: list[tuple[Phase, float]] = [
        ("behavior", config.bc_epochs),
        ("critic", config.critic_epochs),
        ("actor", config.actor_epochs),
    ]
    return stages_of(passes, episodes=episodes, batch_size=config.batch_size)


def begin(phase: Phase, context: ArcherContext) -> None:
    """Makes ready what a phase works with."""
    trained = "values" if phase == "critic" else "policy"
    context.models.begin(trained, seed=context.config.seed)


def update(
    batch: Sequence[Episode], phase: Phase, updater: Updater, context: ArcherContext
) -> list[Metric]:
    """One optimizer step on a global batch; this process does its share of the episodes."""
    models, config, run = context
    if phase == "behavior":
        return clone_episodes(batch, models.policy, updater, config, run)
    learn = learn_critic if phase == "critic" else learn_actor
    return learn(batch, updater, context)


# The critic


# The policy


class WeightedCompletions(NamedTuple):
    """Responses of one micro-batch, and how much each counts."""

    completions: CompletionBatch
    weights_U: Tensor


def learn_actor(batch: Sequence[Episode], updater: Updater, context: ArcherContext) -> list[Metric]:
    """One optimizer step of the policy: weighted cloning of responses with a known outcome."""
    models, _, run = context
    weighted, sums = compute_weights(
        completion_batches(batch[run.process :: run.processes], context), context
    )
    tokens = sum(sum(episode.completion_lengths[: episode.known_completions]) for episode in batch)
    total = torch.zeros(())
    norm = updater.step(
        [
            partial(actor_loss, one, tokens, context, total)
            for one in weighted
            if one.completions.is_known_U.any()
        ]
    )
    models.policy.weights_changed()
    return [
        Metric("actor_loss", float(run.sum(total))),
        Metric("gradient_norm", norm),
        *summarize(run.sum(sums)),
    ]


def compute_weights(
    completions: Sequence[CompletionBatch], context: ArcherContext
) -> tuple[list[WeightedCompletions], Tensor]:
    """Weights of all responses, by A = min(Q̄1, Q̄2)(s, u) - V(s); and sums of what is shown of
    them (`summarize`)."""
    weighted: list[WeightedCompletions] = []
    sums = torch.zeros(6)
    for one in completions:
        slow_U, values_U = target_values(one, context)
        advantages_U = slow_U - values_U
        weights_U, is_capped_U = advantage_weights(
            advantages_U=advantages_U, beta=context.config.beta, cap=context.config.weight_cap
        )
        weighted.append(WeightedCompletions(one, weights_U))
        numbers = [torch.ones_like(weights_U), advantages_U, advantages_U.square()]
        numbers += [is_capped_U.float(), weights_U, weights_U.square()]
        sums += torch.stack(numbers)[:, one.is_known_U].sum(1).cpu()
    return weighted, sums


def actor_loss(
    weighted: WeightedCompletions, tokens: int, context: ArcherContext, total: Tensor
) -> Tensor:
    """This micro-batch's share of the weighted cross-entropy.

    Args:
        tokens: of responses whose outcome is known, in the global batch.
        total: a scalar to which the share is added.
    """
    completions, weights_U = weighted
    rows, completions_N = completions.rows, completions.of_tokens()
    counts_N = completions.is_known_U[completions_N]
    module = context.models.policy.module.train()
    with context.run.autocast():
        scores = module(rows.tokens)
    loss = advantage_weighted_loss(
        logprobs_N=scores.logprobs_BT[rows.is_action_BT][counts_N],
        completions_N=completions_N[counts_N],
        weights_U=weights_U,
    )
    share = loss * counts_N.sum() / tokens
    total += share.detach().cpu()
    return share


def summarize(sums: Tensor) -> list[Metric]:
    """Statistics of the sums over known responses of 1, A, A², capped or not, w and w²."""
    count, advantage, square, capped, weight, weight_square = sums.tolist()
    mean, spread = advantage / max(1.0, count), square / max(1.0, count)
    return [
        Metric("advantage_mean", mean),
        Metric("advantage_std", max(0.0, spread - mean**2) ** 0.5),
        Metric("capped_weights", capped / max(1.0, count)),
        Metric(
            "effective_share", effective_share(count=count, total=weight, squares=weight_square)
        ),
    ]


def plan_archer(config: ArcherConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    return plan_offline(
        config,
        partial(plan_stages, config),
        lambda model: {"critic": 4 * model.trained, "heads": head_memory(model)},
        passes=1,
    )
