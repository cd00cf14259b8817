"""Offline ArCHer: a critic of whole answers, and a policy that prefers the better ones (Zhou et
al. 2024).

First the policy clones the data's behavior. Then a copy of it learns the values of whole answers,
by implicit Q-learning in the MDP of `utterances.py`. Then the policy clones once more, each answer
weighted by its advantage. What acts is that policy.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.archer.utterances import AnswerBatch, answer_targets, mark_answers
from forethought.losses.cross_entropy import advantage_weighted_loss
from forethought.losses.ilql import double_q_loss, expectile_loss
from forethought.offline.dataset import load_episodes
from forethought.offline.episodes import Episode, gather_actions, lay_out, scatter_actions
from forethought.runs.sources import MODEL_DIR
from forethought.targets.token_values import advantage_weights, effective_share
from forethought.training.behavior_cloning import clone_episodes
from forethought.training.optim import Updater
from forethought.training.phases import Phases, Stage, run_phases, stages_of
from forethought.training.run import Existing, Run, open_run
from forethought.training.start import start
from forethought.types import Metric
from forethought.value_guided.models import PolicyWithValues

CRITIC = "critic"
"""Folder of the critic inside the policy's own."""

Phase = Literal["behavior", "critic", "actor"]
"""What is trained: the policy, by behavior cloning; the values of answers; the policy, by them."""


class ArcherContext(NamedTuple):
    """What every update works with."""

    models: PolicyWithValues
    config: ArcherConfig
    run: Run


def train_archer(config: ArcherConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can mend: settings, model, data, disk.
    """
    with open_run(config, existing) as run:
        policy = start(config, run, slots=1, critic=False).policy
        models = PolicyWithValues(policy, policy_folder="", values_folder=CRITIC, acting=None)
        if run.checkpoint is not None:
            models.load_values(run.checkpoint / MODEL_DIR)
        with run.bar("reading", None) as bar:
            episodes = load_episodes(
                config.data,
                models.policy,
                lambda one: one.known_answers > 0,
                on_episode=bar.update,
            )
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


def _answers(episodes: Sequence[Episode], context: ArcherContext) -> list[AnswerBatch]:
    policy = context.models.policy
    most = context.config.compute.micro_batch_tokens
    batches = lay_out(episodes, policy.encoder, policy.device, most)
    return mark_answers(episodes, batches, policy.device)


class AnswerStates(NamedTuple):
    """Last hidden states of the critic's layers, fp32: [U, H] each."""

    before_UH: Tensor
    """In which nothing of the answer is said: V's."""
    within_UH: Tensor
    """In which all but its last token is said: that token's Q is Q of the whole answer."""


def answer_states(answers: AnswerBatch, context: ArcherContext) -> AnswerStates:
    """One forward pass of the critic's layers."""
    critic = context.models.values
    assert critic is not None
    rows = answers.rows
    with context.run.autocast():
        hidden_NH = critic.action_hidden(rows.tokens, rows.is_action_BT)
    return AnswerStates(hidden_NH[answers.is_first_N].float(), hidden_NH[answers.is_last_N].float())


class AnswerValues(NamedTuple):
    """Values of U answers by the critic, in units of return, without gradient."""

    slow_U: Tensor
    """min(Q̄1, Q̄2) of the answer."""
    values_U: Tensor
    """V of its state."""


@torch.no_grad()
def target_values(answers: AnswerBatch, context: ArcherContext) -> AnswerValues:
    """Values of answers by the target network, and of their states."""
    assert context.models.values is not None
    heads, (before_UH, within_UH) = (
        context.models.values.value_head,
        answer_states(answers, context),
    )
    slow_U = _own(heads.slow(within_UH), answers)
    return AnswerValues(slow_U, heads.value(before_UH).squeeze(-1))


def _own(q_UV: Tensor, answers: AnswerBatch) -> Tensor:
    """Q of each answer's last token."""
    tokens_U = answers.rows.actions()[answers.is_last_N]
    return q_UV.gather(1, tokens_U[:, None]).squeeze(1)


# The critic

LOSSES = ("critic_loss", "q_loss", "expectile_loss", "q_gap")
SUMS = ("target", "answers", "start_value", "return", "episodes")


class TargetBatch(NamedTuple):
    """Answers of one micro-batch, and the targets of their Q and their states' V; [U] each."""

    answers: AnswerBatch
    targets_U: Tensor
    slow_U: Tensor


def learn_critic(
    batch: Sequence[Episode], updater: Updater, context: ArcherContext
) -> list[Metric]:
    """One optimizer step of Q1, Q2 and V."""
    models, config, run = context
    assert models.values is not None
    mine = batch[run.process :: run.processes]
    found, sums = compute_targets(mine, _answers(mine, context), context)
    known = sum(episode.known_answers for episode in batch)
    totals = torch.zeros(len(LOSSES))
    norm = updater.step(
        [
            partial(critic_loss, one, known, context, totals)
            for one in found
            if one.answers.is_known_U.any()
        ]
    )
    models.values.value_head.follow(config.polyak_tau)
    means = zip(LOSSES, run.sum(totals).tolist(), strict=True)
    target, answers, start, total, episodes = run.sum(sums).tolist()
    return [
        *(Metric(name, mean) for name, mean in means),
        Metric("gradient_norm", norm),
        Metric("target_mean", target / max(1.0, answers)),
        Metric("start_value", start / episodes),
        Metric("data_return", total / episodes),
    ]


def compute_targets(
    episodes: Sequence[Episode], answers: Sequence[AnswerBatch], context: ArcherContext
) -> tuple[list[TargetBatch], Tensor]:
    """Targets of all answers, and sums of what is shown of them (`SUMS`)."""
    values_of = [target_values(one, context) for one in answers]
    batches = [one.rows for one in answers]
    spread = [
        torch.zeros(len(one.is_first_N)).masked_scatter(one.is_first_N.cpu(), known.values_U.cpu())
        for one, known in zip(answers, values_of, strict=True)
    ]
    values = gather_actions(episodes, batches, spread)
    targets = [
        answer_targets(episode, values_N, gamma=context.config.gamma)
        for episode, values_N in zip(episodes, values, strict=True)
    ]
    sums = torch.zeros(len(SUMS))
    for episode, values_N, targets_N in zip(episodes, values, targets, strict=True):
        numbers = (float(targets_N.sum()), episode.known_answers, float(values_N[0]))
        sums += torch.tensor([*numbers, sum(episode.rewards), 1.0])
    device = context.models.policy.device
    placed = scatter_actions(episodes, batches, targets)
    found = [
        TargetBatch(one, targets_N.to(device)[one.is_last_N], known.slow_U)
        for one, targets_N, known in zip(answers, placed, values_of, strict=True)
    ]
    return found, sums


def critic_loss(batch: TargetBatch, known: int, context: ArcherContext, totals: Tensor) -> Tensor:
    """This micro-batch's share of L = L_Q + L_V.

    Args:
        known: answers with a target in the global batch.
        totals: `LOSSES`, to which the shares are added.
    """
    answers, targets_U, slow_U = batch
    assert context.models.values is not None
    heads, (before_UH, within_UH) = (
        context.models.values.value_head,
        answer_states(answers, context),
    )
    first_U, second_U = (_own(q(within_UH), answers) for q in (heads.first, heads.second))
    values_U = heads.value(before_UH).squeeze(-1)
    counts_U = answers.is_known_U
    regression = double_q_loss(
        first_N=first_U[counts_U], second_N=second_U[counts_U], targets_N=targets_U[counts_U]
    )
    above = expectile_loss(
        values_N=values_U[counts_U],
        targets_N=slow_U[counts_U],
        expectile=context.config.expectile,
    )
    loss, weight = regression.loss + above, counts_U.sum() / known
    shown = torch.stack([loss, regression.loss, above, regression.gap])
    totals += (shown.detach() * weight).cpu()
    return loss * weight


# The policy


class WeightedAnswers(NamedTuple):
    """Answers of one micro-batch, and how much each counts."""

    answers: AnswerBatch
    weights_U: Tensor


def learn_actor(batch: Sequence[Episode], updater: Updater, context: ArcherContext) -> list[Metric]:
    """One optimizer step of the policy: weighted cloning of the answers whose outcome is known."""
    models, _, run = context
    weighted, sums = compute_weights(
        _answers(batch[run.process :: run.processes], context), context
    )
    tokens = sum(sum(episode.answer_lengths[: episode.known_answers]) for episode in batch)
    total = torch.zeros(())
    norm = updater.step(
        [
            partial(actor_loss, one, tokens, context, total)
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


def compute_weights(
    answers: Sequence[AnswerBatch], context: ArcherContext
) -> tuple[list[WeightedAnswers], Tensor]:
    """Weights of all answers, by A = min(Q̄1, Q̄2)(s, u) - V(s); and sums of what is shown of
    them (`summarize`)."""
    weighted: list[WeightedAnswers] = []
    sums = torch.zeros(6)
    for one in answers:
        slow_U, values_U = target_values(one, context)
        advantages_U = slow_U - values_U
        weights_U, is_capped_U = advantage_weights(
            advantages_U=advantages_U, beta=context.config.beta, cap=context.config.weight_cap
        )
        weighted.append(WeightedAnswers(one, weights_U))
        numbers = [torch.ones_like(weights_U), advantages_U, advantages_U.square()]
        numbers += [is_capped_U.float(), weights_U, weights_U.square()]
        sums += torch.stack(numbers)[:, one.is_known_U].sum(1).cpu()
    return weighted, sums


def actor_loss(
    weighted: WeightedAnswers, tokens: int, context: ArcherContext, total: Tensor
) -> Tensor:
    """This micro-batch's share of the weighted cross-entropy.

    Args:
        tokens: of answers whose outcome is known, in the global batch.
        total: a scalar to which the share is added.
    """
    answers, weights_U = weighted
    rows, answers_N = answers.rows, answers.of_tokens()
    counts_N = answers.is_known_U[answers_N]
    module = context.models.policy.module.train()
    with context.run.autocast():
        scores = module(rows.tokens)
    loss = advantage_weighted_loss(
        logprobs_N=scores.logprobs_BT[rows.is_action_BT][counts_N],
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
