"""Offline ArCHer: a critic of whole answers, and a policy that imitates the good ones (Zhou et
al. 2024).

First the policy imitates the data. Then a copy of it learns what answers are worth, by implicit
Q-learning in the MDP of `utterances.py`. Then the policy imitates once more, each answer weighted
by how much better it is than what is to be expected in its state. What acts is that policy.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.archer.models import ArcherModels, Phase, start_archer
from forethought.algorithms.archer.utterances import Answers, answer_targets, mark_answers
from forethought.losses.advantage_weighted import advantage_weighted_loss
from forethought.losses.ilql import double_q_loss, expectile_loss
from forethought.offline.dataset import load_episodes
from forethought.offline.episodes import Episode, gather_actions, lay_out, scatter_actions
from forethought.targets.advantage_weights import advantage_weights, effective_share
from forethought.training.behavior_cloning import learn_to_imitate_episodes
from forethought.training.optim import Updater
from forethought.training.phases import Phases, Stage, run_phases, stages_of
from forethought.training.run import Existing, Run, open_run
from forethought.types import Metric


class Learner(NamedTuple):
    """What every update works with."""

    models: ArcherModels
    config: ArcherConfig
    run: Run


def train_archer(config: ArcherConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can mend: settings, model, data, disk.
    """
    with open_run(config, existing) as run:
        models = start_archer(config, run)
        with run.bar("reading", None) as bar:
            episodes = load_episodes(
                config.data,
                models.policy,
                lambda one: one.known_answers > 0,
                on_episode=bar.update,
            )
        phases = Phases(
            "archer",
            models,
            begin=partial(models.begin, seed=config.seed),
            update=partial(update, learner=Learner(models, config, run)),
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


def update(
    batch: Sequence[Episode], phase: Phase, updater: Updater, learner: Learner
) -> list[Metric]:
    """One optimizer step on a global batch; this process does its share of the episodes."""
    models, config, run = learner
    if phase == "behavior":
        return learn_to_imitate_episodes(batch, models.policy, updater, config, run)
    learn = learn_critic if phase == "critic" else learn_actor
    return learn(batch, updater, learner)


def _answers(episodes: Sequence[Episode], learner: Learner) -> list[Answers]:
    policy = learner.models.policy
    most = learner.config.compute.micro_batch_tokens
    parts = lay_out(episodes, policy.encoder, policy.device, most)
    return mark_answers(episodes, parts, policy.device)


class States(NamedTuple):
    """Last hidden states of the critic's layers, fp32: [U, H] each."""

    before_UH: Tensor
    """In which nothing of the answer is said: V's."""
    within_UH: Tensor
    """In which all but its last token is said: that token's Q is Q of the whole answer."""


def look(answers: Answers, learner: Learner) -> States:
    """One forward pass of the critic's layers."""
    critic = learner.models.critic
    assert critic is not None
    critic.trunk.without_dropout()
    with learner.run.autocast():
        hidden_NH = critic.trunk.action_hidden(answers.part.tokens, answers.part.is_action_BT)
    return States(hidden_NH[answers.is_first_N].float(), hidden_NH[answers.is_last_N].float())


class Worth(NamedTuple):
    """What the critic says of U answers, in units of return, without gradient."""

    slow_U: Tensor
    """min(Q̄1, Q̄2) of the answer."""
    values_U: Tensor
    """V of its state."""


@torch.no_grad()
def see(answers: Answers, learner: Learner) -> Worth:
    """What a part's answers are worth, and their states."""
    assert learner.models.critic is not None
    heads, (before_UH, within_UH) = learner.models.critic.value_head, look(answers, learner)
    slow_U = _own(heads.slow(within_UH), answers)
    return Worth(slow_U, heads.value(before_UH).squeeze(-1))


def _own(q_UV: Tensor, answers: Answers) -> Tensor:
    """Q of each answer's last token."""
    tokens_U = answers.part.actions()[answers.is_last_N]
    return q_UV.gather(1, tokens_U[:, None]).squeeze(1)


# The critic

LOSSES = ("critic_loss", "q_loss", "expectile_loss", "q_gap")
SUMS = ("target", "answers", "start_value", "return", "episodes")


class Judged(NamedTuple):
    """Answers, and what their Q and their states' V are to be; [U] each."""

    answers: Answers
    targets_U: Tensor
    slow_U: Tensor


def learn_critic(batch: Sequence[Episode], updater: Updater, learner: Learner) -> list[Metric]:
    """One optimizer step of Q1, Q2 and V."""
    models, config, run = learner
    assert models.critic is not None
    mine = batch[run.process :: run.processes]
    judged, sums = judge(mine, _answers(mine, learner), learner)
    known = sum(episode.known_answers for episode in batch)
    totals = torch.zeros(len(LOSSES))
    norm = updater.step(
        [
            partial(critic_loss, one, known, learner, totals)
            for one in judged
            if one.answers.is_known_U.any()
        ]
    )
    models.critic.value_head.follow(config.polyak_tau)
    means = zip(LOSSES, run.sum(totals).tolist(), strict=True)
    target, answers, start, total, episodes = run.sum(sums).tolist()
    return [
        *(Metric(name, mean) for name, mean in means),
        Metric("gradient_norm", norm),
        Metric("target_mean", target / max(1.0, answers)),
        Metric("start_value", start / episodes),
        Metric("data_return", total / episodes),
    ]


def judge(
    episodes: Sequence[Episode], answers: Sequence[Answers], learner: Learner
) -> tuple[list[Judged], Tensor]:
    """Targets of all answers, and sums of what is shown of them (`SUMS`)."""
    worths = [see(one, learner) for one in answers]
    parts = [one.part for one in answers]
    spread = [
        torch.zeros(len(one.is_first_N)).masked_scatter(one.is_first_N.cpu(), worth.values_U.cpu())
        for one, worth in zip(answers, worths, strict=True)
    ]
    values = gather_actions(episodes, parts, spread)
    targets = [
        answer_targets(episode, values_N, gamma=learner.config.gamma)
        for episode, values_N in zip(episodes, values, strict=True)
    ]
    sums = torch.zeros(len(SUMS))
    for episode, values_N, targets_N in zip(episodes, values, targets, strict=True):
        numbers = (float(targets_N.sum()), episode.known_answers, float(values_N[0]))
        sums += torch.tensor([*numbers, sum(episode.rewards), 1.0])
    device = learner.models.policy.device
    placed = scatter_actions(episodes, parts, targets)
    judged = [
        Judged(one, targets_N.to(device)[one.is_last_N], worth.slow_U)
        for one, targets_N, worth in zip(answers, placed, worths, strict=True)
    ]
    return judged, sums


def critic_loss(judged: Judged, known: int, learner: Learner, totals: Tensor) -> Tensor:
    """This part's share of L = L_Q + L_V.

    Args:
        known: answers with a target in the global batch.
        totals: `LOSSES`, to which the shares are added.
    """
    answers, targets_U, slow_U = judged
    assert learner.models.critic is not None
    heads, (before_UH, within_UH) = learner.models.critic.value_head, look(answers, learner)
    first_U, second_U = (_own(q(within_UH), answers) for q in (heads.first, heads.second))
    values_U = heads.value(before_UH).squeeze(-1)
    counts_U = answers.is_known_U
    regression = double_q_loss(
        first_N=first_U[counts_U], second_N=second_U[counts_U], targets_N=targets_U[counts_U]
    )
    above = expectile_loss(
        values_N=values_U[counts_U],
        targets_N=slow_U[counts_U],
        expectile=learner.config.expectile,
    )
    loss, weight = regression.loss + above, counts_U.sum() / known
    shown = torch.stack([loss, regression.loss, above, regression.gap])
    totals += (shown.detach() * weight).cpu()
    return loss * weight


# The policy


class Weighted(NamedTuple):
    """Answers, and how much each counts."""

    answers: Answers
    weights_U: Tensor


def learn_actor(batch: Sequence[Episode], updater: Updater, learner: Learner) -> list[Metric]:
    """One optimizer step of the policy: imitation of the answers whose outcome is known."""
    models, _, run = learner
    weighted, sums = weigh(_answers(batch[run.process :: run.processes], learner), learner)
    tokens = sum(sum(episode.answer_lengths[: episode.known_answers]) for episode in batch)
    total = torch.zeros(())
    norm = updater.step(
        [
            partial(actor_loss, one, tokens, learner, total)
            for one in weighted
            if one.answers.is_known_U.any()
        ]
    )
    models.policy.weights_changed()
    return [
        Metric("actor_loss", float(run.sum(total))),
        Metric("gradient_norm", norm),
        *summarize(run.sum(sums)),
    ]


def weigh(answers: Sequence[Answers], learner: Learner) -> tuple[list[Weighted], Tensor]:
    """Weights of all answers, by A = min(Q̄1, Q̄2)(s, u) - V(s); and sums of what is shown of
    them (`summarize`)."""
    weighted: list[Weighted] = []
    sums = torch.zeros(6)
    for one in answers:
        slow_U, values_U = see(one, learner)
        advantages_U = slow_U - values_U
        weights_U, is_capped_U = advantage_weights(
            advantages_U=advantages_U, beta=learner.config.beta, cap=learner.config.weight_cap
        )
        weighted.append(Weighted(one, weights_U))
        numbers = [torch.ones_like(weights_U), advantages_U, advantages_U.square()]
        numbers += [is_capped_U.float(), weights_U, weights_U.square()]
        sums += torch.stack(numbers)[:, one.is_known_U].sum(1).cpu()
    return weighted, sums


def actor_loss(weighted: Weighted, tokens: int, learner: Learner, total: Tensor) -> Tensor:
    """This part's share of the weighted cross-entropy.

    Args:
        tokens: of answers whose outcome is known, in the global batch.
        total: a scalar to which the share is added.
    """
    answers, weights_U = weighted
    part, answers_N = answers.part, answers.of_tokens()
    counts_N = answers.is_known_U[answers_N]
    module = learner.models.policy.module.train()
    with learner.run.autocast():
        scores = module(part.tokens)
    loss = advantage_weighted_loss(
        logprobs_N=scores.logprobs_BT[part.is_action_BT][counts_N],
        answers_N=answers_N[counts_N],
        weights_U=weights_U,
    )
    share = loss * counts_N.sum() / tokens
    total += share.detach().cpu()
    return share


def summarize(sums: Tensor) -> list[Metric]:
    """Of the sums over known answers of 1, A, A², capped or not, w and w²."""
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
