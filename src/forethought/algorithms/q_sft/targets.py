"""Q-SFT's targets: by the next state's value, or by what the data brought; and where p_θ begins."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.q_sft.context import QSFTContext
from forethought.losses.q_sft import support_mask
from forethought.offline.episodes import (
    Episode,
    Transitions,
    choices_of,
    gather_actions,
    lay_out,
    next_values,
    returns_after,
    scatter_actions,
    transitions,
)
from forethought.offline.rows import RowBatch
from forethought.targets.q_sft import (
    BellmanTargets,
    LocalValues,
    bellman_targets,
    local_values,
    values_along,
)
from forethought.types import Metric


class TargetBatch(NamedTuple):
    """Rows of one micro-batch, and the target of each of their actions."""

    rows: RowBatch
    targets_N: Tensor
    is_known_N: Tensor
    choices_NV: Tensor


@torch.no_grad()
def compute_targets(
    episodes: Sequence[Episode], batches: Sequence[RowBatch], context: QSFTContext
) -> tuple[list[TargetBatch], list[Metric]]:
    """The Bellman probability target of every action, by p_θ̄ and π_φ of the *next* state.

    Every state but an episode's first is the next one of the action before it, so each goes
    through both models once.
    """
    config, maps = context.config, context.data.maps
    states = [value_states(episodes, rows, context) for rows in batches]
    columns = [
        gather_actions(episodes, batches, column)
        for column in zip(*(one.local for one in states), strict=True)
    ]
    targets: list[EpisodeTargets] = []
    for number, episode in enumerate(episodes):
        moves = transitions_of(episode, context)
        values_N = values_along(
            LocalValues(*(column[number] for column in columns)),
            rewards_N=moves.rewards_N,
            discounts_N=moves.discounts_N,
            is_inside_N=moves.is_inside_N & (config.backup == "utterance"),
            beta=config.backup_beta,
        )
        following_N = next_values(episode, values_N, maps)
        is_known_N = moves.is_known_N
        result = bellman_targets(
            rewards_N=moves.rewards_N[is_known_N],
            discounts_N=moves.discounts_N[is_known_N],
            next_values_N=following_N[is_known_N],
        )
        targets.append(EpisodeTargets(result, is_known_N, start=float(values_N[0])))
    choices = [one.choices_NV for one in states]
    return scatter_targets(episodes, batches, choices, targets, context)


@torch.no_grad()
def compute_monte_carlo_targets(
    episodes: Sequence[Episode], batches: Sequence[RowBatch], context: QSFTContext
) -> tuple[list[TargetBatch], list[Metric]]:
    """Targets that ask no model: what followed each action in the data, discounted and mapped.

    Of an episode that was cut nothing is known to its end: it has none.
    """
    targets: list[EpisodeTargets] = []
    for episode in episodes:
        result = returns_of(episode, context)
        is_known_N = torch.full((episode.actions,), episode.known_returns > 0)
        start = float(result.targets_N[0]) if episode.known_returns else 0.0
        targets.append(EpisodeTargets(result, is_known_N, start))
    policy = context.models.behavior
    projection = policy.module.model.get_output_embeddings()
    assert projection is not None
    vocabulary = projection.weight.shape[0]
    never = policy.encoder.placeholder_ids
    choices = [choices_of(episodes, rows, vocabulary=vocabulary, never=never) for rows in batches]
    return scatter_targets(episodes, batches, choices, targets, context)


def transitions_of(episode: Episode, context: QSFTContext) -> Transitions:
    """Its tokens' rewards and discounts, on the data's maps."""
    config = context.config
    inside = config.gamma if config.utterance_gamma == "gamma" else 1.0
    return transitions(episode, context.data.maps, gamma=config.gamma, utterance_gamma=inside)


def returns_of(episode: Episode, context: QSFTContext) -> BellmanTargets:
    """What followed each of its actions, discounted and mapped; nothing of one that was cut."""
    moves = transitions_of(episode, context)
    following_N = returns_after(episode, moves, context.data.maps)
    known = episode.known_returns
    return bellman_targets(
        rewards_N=moves.rewards_N[:known],
        discounts_N=moves.discounts_N[:known],
        next_values_N=following_N[:known],
    )


class EpisodeTargets(NamedTuple):
    """An episode's targets."""

    result: BellmanTargets
    """Targets of the actions whose outcome is known."""
    is_known_N: Tensor
    start: float
    """What its first state is worth, mapped."""


def scatter_targets(
    episodes: Sequence[Episode],
    batches: Sequence[RowBatch],
    choices: Sequence[Tensor],
    targets: Sequence[EpisodeTargets],
    context: QSFTContext,
) -> tuple[list[TargetBatch], list[Metric]]:
    """Targets per episode as targets per micro-batch, and their averages over all processes."""
    maps, device = context.data.maps, context.models.behavior.device
    sums = torch.zeros(len(SUMS))
    for episode, (result, is_known_N, start) in zip(episodes, targets, strict=True):
        count = is_known_N.sum()
        shares = (result.targets_N.mean(), result.clipped_low, result.clipped_high)
        per_action = [count, *(share.nan_to_num() * count for share in shares)]
        value = maps.at(episode.first_step).from_unit(min(start, 1.0))
        sums += torch.tensor([*per_action, 1.0, value, sum(episode.rewards)])
    known = [one.is_known_N for one in targets]
    filled = [
        torch.zeros(len(is_known_N)).masked_scatter(is_known_N, one.result.targets_N)
        for one, is_known_N in zip(targets, known, strict=True)
    ]
    pairs = zip(
        batches,
        scatter_actions(episodes, batches, filled),
        scatter_actions(episodes, batches, known),
        choices,
        strict=True,
    )
    found = [TargetBatch(r, t.to(device), k.to(device), c) for r, t, k, c in pairs if k.any()]
    return found, summarize(context.run.sum(sums))


SUMS = ("actions", "target", "clipped_low", "clipped_high", "episodes", "start_value", "return")


def summarize(sums: Tensor) -> list[Metric]:
    """Means over known actions, and over episodes."""
    actions, target, low, high, episodes, start, total = sums.tolist()
    return [
        Metric("target_mean", target / max(actions, 1.0)),
        Metric("target_clipped_low", low / max(actions, 1.0)),
        Metric("target_clipped_high", high / max(actions, 1.0)),
        Metric("start_value", start / episodes),
        Metric("data_return", total / episodes),
    ]


class StateValues(NamedTuple):
    """What the target network and the behavior policy say of a micro-batch's states."""

    local: LocalValues
    choices_NV: Tensor


def value_states(episodes: Sequence[Episode], rows: RowBatch, context: QSFTContext) -> StateValues:
    """Values of the actions in every state in which the agent writes a token."""
    models, support = context.models, context.config.support
    assert models.target is not None
    behavior, target = models.behavior.module, models.target.module
    behavior.without_dropout()
    never = models.behavior.encoder.placeholder_ids
    choices_NV = choices_of(episodes, rows, vocabulary=behavior.vocabulary, never=never)

    def value(
        logits_nV: Tensor, target_nH: Tensor, choices_nV: Tensor, actions_n: Tensor
    ) -> LocalValues:
        behavior_nV = torch.log_softmax(logits_nV, dim=-1)
        support_nV = choices_nV & support_mask(
            logprobs_NV=behavior_nV,
            top_p=support.top_p,
            min_probability=support.min_probability,
            residual=context.data.residual,
        )
        return local_values(
            likelihood_logprobs_NV=target.project(target_nH),
            behavior_logprobs_NV=behavior_nV,
            support_NV=support_nV,
            actions_N=actions_n,
            floor=support.floor,
            beta=context.config.backup_beta,
        )

    with context.run.autocast():
        behavior_NH = behavior.action_hidden(rows.tokens, rows.is_action_BT)
        target_NH = target.action_hidden(rows.tokens, rows.is_action_BT)
        columns = behavior.in_chunks(value, behavior_NH, target_NH, choices_NV, rows.actions())
    return StateValues(LocalValues(*columns), choices_NV)


# The residual token

EPISODES, ACTIONS = 256, 8192
"""What the share is fitted to: so many episodes, spread evenly over the data, or their first so
many tokens."""

RIDGE = 1e-4
"""Beside the mean square of a hidden state's components."""

LEAST = 0.05
"""Minimum of either share: data that all ended well leave something to the residual token."""


@torch.no_grad()
def init_residual_token(context: QSFTContext, residual: int) -> None:
    """Makes p(a|s) = b π_φ(a|s) of every token and leaves 1 - b to the residual token.

        min over r of Σ_n (r·h_n - log Σ_a exp z_a(n) - log((1 - b) / b))²

    r is the residual token's own row of the output projection, and nothing else is changed; h are
    the last hidden states, z the logits; b is the mean mapped return-to-go of the data. Where the
    projection is not trained (LoRA) the row is π_φ's, too, and stays as it is; so it does where
    every episode was cut and no return is known.
    """
    models, data, config, _ = context
    assert models.likelihood is not None
    module = models.likelihood.module
    projection = module.model.get_output_embeddings()
    assert projection is not None
    if not projection.weight.requires_grad:
        return
    sample = data.episodes[:: -(-len(data.episodes) // EPISODES)]
    returns_N = torch.cat([returns_of(episode, context).targets_N for episode in sample])
    if len(returns_N) == 0:
        return
    share = returns_N.mean().clamp(LEAST, 1 - LEAST).to(models.behavior.device)
    module.eval()
    hidden: list[Tensor] = []
    wanted: list[Tensor] = []
    encoder, device = models.behavior.encoder, models.behavior.device
    for rows in lay_out(sample, encoder, device, config.compute.micro_batch_tokens):
        hidden.append(module.action_hidden(rows.tokens, rows.is_action_BT))
        nats_N = module.log_normalizers(hidden[-1])
        wanted.append(nats_N + torch.logit(1 - share))
        if sum(map(len, wanted)) >= ACTIONS:
            break
    row_H = least_squares(torch.cat(hidden), torch.cat(wanted))
    projection.weight[residual] = row_H.to(projection.weight.dtype)


def least_squares(inputs_NH: Tensor, wanted_N: Tensor) -> Tensor:
    """The row [H], float64, whose products with the inputs are nearest to what is wanted, held
    short by a ridge, so that there is one even where inputs are fewer than components."""
    x_NH, y_N = inputs_NH.double(), wanted_N.double()
    square_HH = x_NH.T @ x_NH
    ridge = RIDGE * square_HH.diagonal().mean()
    return torch.linalg.solve(square_HH + ridge * torch.eye(len(square_HH)).to(x_NH), x_NH.T @ y_N)
