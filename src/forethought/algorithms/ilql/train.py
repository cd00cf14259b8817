"""ILQL: offline Q-learning with values in heads of their own (Snell et al. 2023).

First π_φ clones the data's behavior; then a copy of it learns Q1, Q2 and V of every token, from
the data's own actions. The tokens are the MDP of `episodes.py`, as Q-SFT's are.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.ilql.config import ILQLConfig
from forethought.losses.ilql import conservative_loss, double_q_loss, expectile_loss
from forethought.losses.q_sft import support_mask
from forethought.models.loading import BEHAVIOR
from forethought.offline.episodes import (
    Episode,
    gather_actions,
    lay_out,
    next_values,
    scatter_actions,
    transitions,
)
from forethought.offline.rows import RowBatch
from forethought.runs.checkpoints import MODEL_DIR
from forethought.targets.reward_map import ENVIRONMENT_UNITS
from forethought.targets.token_values import monte_carlo_targets, td_targets
from forethought.training.behavior_cloning import clone_episodes
from forethought.training.optim import Updater
from forethought.training.phases import (
    TARGET_SUMS,
    Phases,
    Stage,
    read_episodes,
    run_phases,
    stages_of,
    target_metrics,
)
from forethought.training.plan import head_memory, plan_offline
from forethought.training.run import Existing, Run, open_run
from forethought.training.start import start
from forethought.types import Metric
from forethought.value_guided.models import VALUES, PolicyWithValues, TokenValues

Phase = Literal["behavior", "values"]
"""What is trained: π_φ; a copy of it with value heads."""


class ILQLContext(NamedTuple):
    """What every update works with."""

    models: PolicyWithValues
    config: ILQLConfig
    run: Run


def train_ilql(config: ILQLConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can fix: settings, model, data, disk.
    """
    with open_run(config, existing, can_shard=False) as run:
        policy = start(config, run, slots=1, critic=False).policy
        models = PolicyWithValues(
            policy, policy_folder=BEHAVIOR, values_folder=VALUES, acting=config.acting
        )
        if run.checkpoint is not None:
            models.load_values(run.checkpoint / MODEL_DIR)
        episodes = read_episodes(config, policy, run, lambda one: known_actions(one, config) > 0)
        context = ILQLContext(models, config, run)
        phases = Phases(
            "ilql",
            models,
            begin=partial(begin, context=context),
            update=partial(update, context=context),
            head_learning_rate=config.head_learning_rate,
        )
        run_phases(phases, plan_stages(config, len(episodes)), episodes, config, run)
        return run.folder.path


def known_actions(episode: Episode, config: ILQLConfig) -> int:
    """How many tokens have a target: where returns are, all of an episode or none."""
    if config.targets == "monte_carlo" and episode.known_actions < episode.actions:
        return 0
    return episode.known_actions


def plan_stages(config: ILQLConfig, episodes: int) -> list[Stage[Phase]]:
    """The phases with their updates; at least one each."""
    passes: list[tuple[Phase, float]] = [
        ("behavior", config.bc_epochs),
        ("values", config.epochs),
    ]
    return stages_of(passes, episodes=episodes, batch_size=config.batch_size)


def begin(phase: Phase, context: ILQLContext) -> None:
    """Makes ready what a phase works with."""
    trained = "policy" if phase == "behavior" else "values"
    context.models.begin(trained, seed=context.config.seed)


def update(
    batch: Sequence[Episode], phase: Phase, updater: Updater, context: ILQLContext
) -> list[Metric]:
    """One optimizer step on a global batch; this process does its share of the episodes."""
    if phase == "behavior":
        models, config, run = context
        return clone_episodes(batch, models.policy, updater, config, run)
    return learn_values(batch, updater, context)


# The values

LOSSES = ("ilql_loss", "q_loss", "expectile_loss", "cql_loss", "q_gap")


class TargetBatch(NamedTuple):
    """Rows of one micro-batch, and the targets of their actions; [N] each."""

    rows: RowBatch
    targets_N: Tensor
    """Targets of Q1 and Q2."""
    slow_N: Tensor
    """Targets of V: min(Q̄1, Q̄2) of the data's actions, by the target network."""
    is_known_N: Tensor


def learn_values(batch: Sequence[Episode], updater: Updater, context: ILQLContext) -> list[Metric]:
    """One optimizer step of Q1, Q2 and V."""
    models, config, run = context
    policy = models.policy
    assert models.values is not None
    mine = batch[run.process :: run.processes]
    batches = lay_out(mine, policy.encoder, policy.device, config.compute.micro_batch_tokens)
    known = sum(known_actions(episode, config) for episode in batch)
    found, sums = compute_targets(mine, batches, context)
    totals = torch.zeros(len(LOSSES))
    losses: list[Callable[[], Tensor]] = [
        partial(value_loss, one, known, context, totals) for one in found
    ]
    norm = updater.step(losses)
    models.values.value_head.follow(config.polyak_tau)
    means = [
        Metric(name, mean)
        for name, mean in zip(LOSSES, run.sum(totals).tolist(), strict=True)
        if name != "expectile_loss" or config.targets == "expectile"
    ]
    asks_model = config.targets != "monte_carlo"
    shown = [m for m in target_metrics(run.sum(sums)) if asks_model or m.name != "start_value"]
    return [*means, Metric("gradient_norm", norm), *shown]


def value_loss(batch: TargetBatch, known: int, context: ILQLContext, totals: Tensor) -> Tensor:
    """This micro-batch's share of L = L_Q + L_V + w L_CQL."""
    rows, targets_N, slow_N, is_known_N = batch
    config = context.config
    first_NV, second_NV, values_N = token_values(rows, context)
    actions_N = rows.actions()[is_known_N]
    first_NV, second_NV = first_NV[is_known_N], second_NV[is_known_N]
    first_N, second_N = (
        q_NV.gather(1, actions_N[:, None]).squeeze(1) for q_NV in (first_NV, second_NV)
    )
    regression = double_q_loss(first_N=first_N, second_N=second_N, targets_N=targets_N[is_known_N])
    lowering = conservative_loss(q_NV=first_NV, actions_N=actions_N) + conservative_loss(
        q_NV=second_NV, actions_N=actions_N
    )
    above = torch.zeros_like(lowering)
    if config.targets == "expectile":
        above = expectile_loss(
            values_N=values_N[is_known_N], targets_N=slow_N[is_known_N], expectile=config.expectile
        )
    loss = regression.loss + above + config.cql_weight * lowering
    weight = len(actions_N) / known
    shown = torch.stack([loss, regression.loss, above, lowering, regression.gap])
    totals += shown.detach().cpu() * weight
    return loss * weight


def token_values(rows: RowBatch, context: ILQLContext) -> TokenValues:
    """Q1, Q2 and V in every state in which the agent writes a token."""
    values = context.models.values
    assert values is not None
    return values.value_head(_hidden(rows, context))


def _hidden(rows: RowBatch, context: ILQLContext) -> Tensor:
    assert context.models.values is not None
    with context.run.autocast():
        return context.models.values.action_hidden(rows.tokens, rows.is_action_BT)


@torch.no_grad()
def compute_targets(
    episodes: Sequence[Episode], batches: Sequence[RowBatch], context: ILQLContext
) -> tuple[list[TargetBatch], Tensor]:
    """Targets of all actions, and sums of what is shown of them (`TARGET_SUMS`).

    Every state but an episode's first is the next one of the action before it, so each goes
    through the model once; where the data's returns are the targets, none does.
    """
    config = context.config
    utterance_gamma = config.gamma if config.utterance_gamma == "gamma" else 1.0
    if config.targets == "monte_carlo":
        zeros = [torch.zeros(len(rows.actions())) for rows in batches]
        states = list(zip(zeros, zeros, strict=True))
    else:
        states = [target_values(rows, context) for rows in batches]
    values = gather_actions(episodes, batches, [values_N for values_N, _ in states])
    targets: list[Tensor] = []
    known: list[Tensor] = []
    sums = torch.zeros(len(TARGET_SUMS))
    for episode, values_N in zip(episodes, values, strict=True):
        moves = transitions(
            episode, ENVIRONMENT_UNITS, gamma=config.gamma, utterance_gamma=utterance_gamma
        )
        is_known_N = moves.is_known_N
        if not known_actions(episode, config):
            is_known_N = torch.zeros_like(is_known_N)
            targets_N = torch.zeros_like(values_N)
        elif config.targets == "monte_carlo":
            targets_N = monte_carlo_targets(
                rewards_N=moves.rewards_N,
                discounts_N=moves.discounts_N,
                last_value=episode.bootstrap_value,
            )
        else:
            found_N = td_targets(
                rewards_N=moves.rewards_N[is_known_N],
                discounts_N=moves.discounts_N[is_known_N],
                next_values_N=next_values(episode, values_N, ENVIRONMENT_UNITS)[is_known_N],
            )
            targets_N = torch.zeros_like(values_N).masked_scatter(is_known_N, found_N)
        targets.append(targets_N)
        known.append(is_known_N)
        counts = (float(targets_N.sum()), float(is_known_N.sum()), float(values_N[0]))
        sums += torch.tensor([*counts, sum(episode.rewards), 1.0])
    columns = zip(
        batches,
        scatter_actions(episodes, batches, targets),
        (slow_N for _, slow_N in states),
        scatter_actions(episodes, batches, known),
        strict=True,
    )
    device = context.models.policy.device
    found = [
        TargetBatch(rows, *(one.to(device) for one in numbers))
        for rows, *numbers in columns
        if numbers[-1].any()
    ]
    return found, sums


def target_values(rows: RowBatch, context: ILQLContext) -> tuple[Tensor, Tensor]:
    """V of the states, and the target network's Q of the data's actions in them; [N] each."""
    assert context.models.values is not None
    heads, hidden_NH = context.models.values.value_head, _hidden(rows, context)
    slow_NV = heads.slow(hidden_NH)
    slow_N = slow_NV.gather(1, rows.actions()[:, None]).squeeze(1)
    if context.config.targets == "expectile":
        return heads(hidden_NH).values_N, slow_N
    never = list(context.models.policy.encoder.placeholder_ids)
    slow_NV[:, never] = -torch.inf
    if context.config.support_min_probability > 0:
        slow_NV = slow_NV.where(supported(rows, context), -torch.inf)
    return slow_NV.amax(1), slow_N


def supported(rows: RowBatch, context: ILQLContext) -> Tensor:
    """Tokens that π_φ is likely enough to write, by the states of a micro-batch: bool [N, V]."""
    module, least = context.models.policy.module, context.config.support_min_probability
    module.without_dropout()

    def is_likely(logits_nV: Tensor) -> tuple[Tensor]:
        logprobs_nV = torch.log_softmax(logits_nV, dim=-1)
        return (support_mask(logprobs_NV=logprobs_nV, top_p=1.0, min_probability=least),)

    with context.run.autocast():
        hidden_NH = module.action_hidden(rows.tokens, rows.is_action_BT)
        return module.in_chunks(is_likely, hidden_NH)[0]


def plan_ilql(config: ILQLConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    return plan_offline(
        config,
        partial(plan_stages, config),
        lambda model: {"behavior": 4 * model.trained, "heads": head_memory(model)},
        passes=1,
    )
