"""What every token of an episode is worth to Q-SFT: by the models, or by what the data brought."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.q_sft.models import Learner
from forethought.losses.support import support_mask
from forethought.offline.episodes import (
    Episode,
    Part,
    Transitions,
    choices_of,
    gather_actions,
    next_values,
    returns_after,
    scatter_actions,
    transitions,
)
from forethought.targets.bellman import BellmanTargets, bellman_targets
from forethought.targets.state_values import LocalValues, local_values, values_along
from forethought.types import Metric


class Judged(NamedTuple):
    """A part, and what each of its actions is worth."""

    part: Part
    targets_N: Tensor
    is_known_N: Tensor
    choices_NV: Tensor


@torch.no_grad()
def judge(
    episodes: Sequence[Episode], parts: Sequence[Part], learner: Learner
) -> tuple[list[Judged], list[Metric]]:
    """The Bellman probability target of every action, by p_θ̄ and π_φ of the *next* state.

    Every state but an episode's first is the next one of the action before it, so each goes
    through both models once.
    """
    config, maps = learner.config, learner.data.maps
    seen = [see(episodes, part, learner) for part in parts]
    columns = [
        gather_actions(episodes, parts, column)
        for column in zip(*(one.local for one in seen), strict=True)
    ]
    targets: list[Known] = []
    for number, episode in enumerate(episodes):
        way = way_of(episode, learner)
        values_N = values_along(
            LocalValues(*(column[number] for column in columns)),
            rewards_N=way.rewards_N,
            discounts_N=way.discounts_N,
            is_inside_N=way.is_inside_N & (config.backup == "utterance"),
            beta=config.backup_beta,
        )
        following_N = next_values(episode, values_N, maps)
        is_known_N = way.is_known_N
        result = bellman_targets(
            rewards_N=way.rewards_N[is_known_N],
            discounts_N=way.discounts_N[is_known_N],
            next_values_N=following_N[is_known_N],
        )
        targets.append(Known(result, is_known_N, start=float(values_N[0])))
    choices = [one.choices_NV for one in seen]
    return hand_out(episodes, parts, choices, targets, learner)


@torch.no_grad()
def read_returns(
    episodes: Sequence[Episode], parts: Sequence[Part], learner: Learner
) -> tuple[list[Judged], list[Metric]]:
    """Targets that ask no model: what followed each action in the data, discounted and mapped.

    Of an episode that was cut nothing is known to its end: it has none.
    """
    targets: list[Known] = []
    for episode in episodes:
        result = returns_of(episode, learner)
        is_known_N = torch.full((episode.actions,), episode.known_returns > 0)
        start = float(result.targets_N[0]) if episode.known_returns else 0.0
        targets.append(Known(result, is_known_N, start))
    policy = learner.models.behavior
    projection = policy.module.model.get_output_embeddings()
    assert projection is not None
    vocabulary = projection.weight.shape[0]
    never = policy.encoder.placeholder_ids
    choices = [choices_of(episodes, part, vocabulary=vocabulary, never=never) for part in parts]
    return hand_out(episodes, parts, choices, targets, learner)


def way_of(episode: Episode, learner: Learner) -> Transitions:
    """Its tokens' rewards and discounts, on the data's maps."""
    config = learner.config
    inside = config.gamma if config.utterance_gamma == "gamma" else 1.0
    return transitions(episode, learner.data.maps, gamma=config.gamma, utterance_gamma=inside)


def returns_of(episode: Episode, learner: Learner) -> BellmanTargets:
    """What followed each of its actions, discounted and mapped; nothing of one that was cut."""
    way = way_of(episode, learner)
    following_N = returns_after(episode, way, learner.data.maps)
    known = episode.known_returns
    return bellman_targets(
        rewards_N=way.rewards_N[:known],
        discounts_N=way.discounts_N[:known],
        next_values_N=following_N[:known],
    )


class Known(NamedTuple):
    """An episode's targets."""

    result: BellmanTargets
    """Of the actions whose outcome is known."""
    is_known_N: Tensor
    start: float
    """What its first state is worth, mapped."""


def hand_out(
    episodes: Sequence[Episode],
    parts: Sequence[Part],
    choices: Sequence[Tensor],
    targets: Sequence[Known],
    learner: Learner,
) -> tuple[list[Judged], list[Metric]]:
    """Targets per episode as targets per part, and their averages over all processes."""
    maps, device = learner.data.maps, learner.models.behavior.device
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
        parts,
        scatter_actions(episodes, parts, filled),
        scatter_actions(episodes, parts, known),
        choices,
        strict=True,
    )
    judged = [Judged(p, t.to(device), k.to(device), c) for p, t, k, c in pairs if k.any()]
    return judged, summarize(learner.run.sum(sums))


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


class Seen(NamedTuple):
    """What the slow copy and the behavior policy say of a part's states."""

    local: LocalValues
    choices_NV: Tensor


def see(episodes: Sequence[Episode], part: Part, learner: Learner) -> Seen:
    """What actions are worth in every state in which the agent writes a token."""
    models, support = learner.models, learner.config.support
    assert models.target is not None
    behavior, target = models.behavior.module, models.target.module
    behavior.without_dropout()
    never = models.behavior.encoder.placeholder_ids
    choices_NV = choices_of(episodes, part, vocabulary=behavior.vocabulary, never=never)

    def value(
        logits_nV: Tensor, target_nH: Tensor, choices_nV: Tensor, actions_n: Tensor
    ) -> LocalValues:
        behavior_nV = torch.log_softmax(logits_nV, dim=-1)
        support_nV = choices_nV & support_mask(
            logprobs_NV=behavior_nV,
            top_p=support.top_p,
            min_probability=support.min_probability,
            dummy=learner.data.dummy,
        )
        return local_values(
            likelihood_logprobs_NV=target.project(target_nH),
            behavior_logprobs_NV=behavior_nV,
            support_NV=support_nV,
            actions_N=actions_n,
            floor=support.floor,
            beta=learner.config.backup_beta,
        )

    with learner.run.autocast():
        behavior_NH = behavior.action_hidden(part.tokens, part.is_action_BT)
        target_NH = target.action_hidden(part.tokens, part.is_action_BT)
        columns = behavior.in_chunks(value, behavior_NH, target_NH, choices_NV, part.actions())
    return Seen(LocalValues(*columns), choices_NV)
