"""Q-SFT: offline Q-learning whose values are probabilities of tokens (Hong et al. 2024).

First π_φ clones the data's behavior; then p_θ learns, by a weighted cross-entropy, to give each
token the probability π_φ(a|s) Q(s, a). Equation numbers are the paper's; targets: `targets.py`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import Phase, QSFTContext, find_maps, start_context
from forethought.algorithms.q_sft.targets import (
    TargetBatch,
    compute_monte_carlo_targets,
    compute_targets,
    init_residual_token,
)
from forethought.losses.q_sft import likelihood_loss
from forethought.offline.episodes import Episode, lay_out
from forethought.training.behavior_cloning import cloning_loss
from forethought.training.optim import Updater
from forethought.training.phases import Phases, Stage, run_phases, stages_of
from forethought.training.plan import plan_offline
from forethought.training.run import Existing, open_run
from forethought.types import Metric


def train_q_sft(config: QSFTConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can fix: settings, model, data, disk.
    """
    with open_run(config, existing, can_shard=config.phases == "two") as run:
        context = start_context(config, run)
        models, episodes = context.models, context.data.episodes
        begins = partial(begin, context=context)
        phases = Phases("q-sft", models, begins, partial(update, context=context))
        run_phases(phases, plan_stages(config, len(episodes)), episodes, config, run)
        return run.folder.path


def plan_stages(config: QSFTConfig, episodes: int) -> list[Stage[Phase]]:
    """The phases with their updates, at least one each. Joint ones need none for π_φ alone."""
    passes: list[tuple[Phase, float]] = [
        ("behavior", config.bc_epochs if config.phases == "two" else 0.0),
        ("returns", config.mc_epochs),
        ("likelihood", config.epochs),
    ]
    return stages_of(passes, episodes=episodes, batch_size=config.batch_size)


def begin(phase: Phase, context: QSFTContext) -> None:
    """Makes ready what a phase works with."""
    models, residual = context.models, context.data.residual
    is_new = models.likelihood is None
    models.begin(phase)
    if is_new and phase != "behavior" and residual is not None:
        init_residual_token(context, residual)
        models.update_target_network(1.0)


def update(
    batch: Sequence[Episode], phase: Phase, updater: Updater, context: QSFTContext
) -> list[Metric]:
    """One optimizer step on a global batch; this process does its share of the episodes."""
    models, _, config, run = context
    mine = batch[run.process :: run.processes]
    policy = models.behavior
    batches = lay_out(mine, policy.encoder, policy.device, config.compute.micro_batch_tokens)
    losses: list[Callable[[], Tensor]] = []
    totals: dict[str, Tensor] = {}
    metrics: list[Metric] = []
    if phase != "behavior":
        valued = totals["likelihood_loss"] = torch.zeros(())
        compute = compute_monte_carlo_targets if phase == "returns" else compute_targets
        found, metrics = compute(mine, batches, context)
        known = sum(e.known_returns if phase == "returns" else e.known_actions for e in batch)
        losses += [partial(value_loss, one, known, context, valued) for one in found]
    if phase == "behavior" or config.phases == "joint":
        cloned = totals["loss"] = torch.zeros(())
        actions = sum(episode.actions for episode in batch)
        losses += [
            partial(cloning_loss, rows.tokens, rows.is_action_BT, actions, policy, run, cloned)
            for rows in batches
        ]
    norm = updater.step(losses)
    policy.weights_changed()
    if phase != "behavior":
        models.update_target_network(config.polyak_tau)
    sums = run.sum(torch.stack(list(totals.values()))).tolist()
    means = [Metric(name, total) for name, total in zip(totals, sums, strict=True)]
    return [*means, Metric("gradient_norm", norm), *metrics]


def value_loss(batch: TargetBatch, known: int, context: QSFTContext, total: Tensor) -> Tensor:
    """This micro-batch's share of Eq. 3: weighted cross-entropy of p_θ."""
    rows, targets_N, is_known_N, choices_NV = batch
    assert context.models.likelihood is not None
    module = context.models.likelihood.module
    module.without_dropout()
    known_N = is_known_N.nonzero()[:, 0]

    def weigh(logits_nV: Tensor, known_n: Tensor) -> tuple[Tensor]:
        result = likelihood_loss(
            logprobs_NV=torch.log_softmax(logits_nV, dim=-1),
            actions_N=rows.actions()[known_n],
            targets_N=targets_N[known_n],
            choices_NV=choices_NV[known_n],
            residual=context.data.residual,
        )
        return (result.loss[None] * len(known_n),)

    with context.run.autocast():
        hidden_NH = module.action_hidden(rows.tokens, rows.is_action_BT)
        (sums,) = module.in_chunks(weigh, hidden_NH[known_N], known_N)
    share = sums.sum() / known
    total += share.detach().cpu()
    return share


def plan_q_sft(config: QSFTConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    maps = find_maps(config).maps
    ends = f"from {maps[0].lowest:g} to {maps[0].highest:g}"
    more = f", those from the last step on {maps[-1].lowest:g} to {maps[-1].highest:g}"
    return plan_offline(
        config,
        partial(plan_stages, config),
        lambda model: {"behavior and target": 2 * 4 * model.trained},
        [f"reward map  returns {ends} become 0 to 1{more if len(maps) > 1 else ''}"],
        passes=2,
    )
