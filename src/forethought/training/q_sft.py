"""Q-SFT: offline Q-learning whose values are probabilities of tokens (Hong et al. 2024).

First π_φ imitates the data; then p_θ learns, by a weighted cross-entropy, to give each token
the probability π_φ(a|s) Q(s, a). Equation numbers are the paper's.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forethought.config_q_sft import QSFTConfig
from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.losses.q_sft import likelihood_loss
from forethought.losses.support import support_mask
from forethought.targets.bellman import bellman_targets
from forethought.targets.state_values import LocalValues, local_values, values_along
from forethought.training.episodes import (
    Episode,
    Part,
    choices_of,
    gather_actions,
    lay_out,
    next_values,
    scatter_actions,
    transitions,
)
from forethought.training.offline import OfflineData, load_offline
from forethought.training.optim import Updater
from forethought.training.q_sft_models import Phase, QSFTModels, start_q_sft
from forethought.training.run import Existing, Run, open_run
from forethought.types import Measure


class Stage(NamedTuple):
    """A phase, and which of the run's updates belong to it."""

    phase: Phase
    first: int
    updates: int


class Learner(NamedTuple):
    """What every update works with."""

    models: QSFTModels
    updater: Updater
    data: OfflineData
    config: QSFTConfig
    run: Run


def train_q_sft(config: QSFTConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can mend: settings, model, data, disk.
    """
    with open_run(config, existing) as run:
        world, models = start_q_sft(config, run)
        data = load_offline(config, world, models.behaviour)
        stages = plan_stages(config, len(data.episodes))
        total = sum(stage.updates for stage in stages)
        bar = run.bar("q-sft", total)
        bar.update(run.steps_done)
        for stage in stages:
            if run.steps_done >= stage.first + stage.updates:
                continue
            models.begin(stage.phase)
            is_resumed = run.steps_done >= stage.first
            updater = run.make_updater(
                models, config.optimizer, total_steps=stage.updates, is_resumed=is_resumed
            )
            learner = Learner(models, updater, data, config, run)
            if updater.steps == 0 and stage.first > 0:
                run.save(models, updater, step=stage.first)
            while updater.steps < stage.updates:
                started = perf_counter()
                batch = choose(data, stage, updater.steps, config)
                measures = update(batch, stage.phase, learner)
                seconds, tokens = perf_counter() - started, sum(e.tokens for e in batch)
                step = stage.first + updater.steps
                speed = [Measure("update_s", seconds), Measure("tokens_per_s", tokens / seconds)]
                run.record(step, measures, speed)
                bar.update()
                bar.set_postfix(loss=f"{measures[0].value:.4f}", refresh=False)
                is_last = step == total
                if is_last or (
                    step % config.checkpoint_every == 0 and updater.steps < stage.updates
                ):
                    run.save(models, updater, step=step)
        bar.close()
        return run.folder.path


def plan_stages(config: QSFTConfig, episodes: int) -> list[Stage]:
    """The phases with their updates; at least one each."""

    def updates(epochs: float) -> int:
        return max(1, round(epochs * episodes / config.batch_size))

    if config.phases == "joint":
        return [Stage("joint", 0, updates(config.epochs))]
    first = updates(config.behaviour_epochs) if config.behaviour_epochs > 0 else 0
    imitation = [Stage("behaviour", 0, first)] if first else []
    return [*imitation, Stage("likelihood", first, updates(config.epochs))]


def choose(data: OfflineData, stage: Stage, number: int, config: QSFTConfig) -> list[Episode]:
    """Which episodes a stage's n-th update learns from: each epoch shuffles anew.

    A function of the seed alone, so a resumed run sees what it would have seen.
    """
    count, first = len(data.episodes), number * config.batch_size
    positions = range(first, first + config.batch_size)
    shuffled = {
        epoch: np.random.default_rng([config.seed, stage.first, epoch]).permutation(count)
        for epoch in {position // count for position in positions}
    }
    return [data.episodes[shuffled[p // count][p % count]] for p in positions]


def update(batch: Sequence[Episode], phase: Phase, learner: Learner) -> list[Measure]:
    """One optimiser step on a global batch; this process does its share of the episodes."""
    models, updater, _, config, run = learner
    mine = batch[run.process :: run.processes]
    policy = models.behaviour
    parts = lay_out(mine, policy.encoder, policy.device, config.compute.micro_batch_tokens)
    losses: list[Callable[[], Tensor]] = []
    imitated, valued = torch.zeros(()), torch.zeros(())
    measures: list[Measure] = []
    if phase != "behaviour":
        judged, measures = judge(mine, parts, learner)
        known = sum(episode.known_actions for episode in batch)
        losses += [partial(learn_values, one, known, learner, valued) for one in judged]
    if phase != "likelihood":
        actions = sum(episode.actions for episode in batch)
        losses += [partial(imitate, part, actions, learner, imitated) for part in parts]
    norm = updater.step(losses)
    policy.weights_changed()
    if phase != "behaviour":
        models.follow(config.target_rate)
    shown = {"behaviour": [imitated], "likelihood": [valued], "joint": [valued, imitated]}[phase]
    names = {"behaviour": ["loss"], "likelihood": ["likelihood_loss"], "joint": BOTH_LOSSES}[phase]
    totals = run.sum(torch.stack(shown)).tolist()
    means = [Measure(name, total) for name, total in zip(names, totals, strict=True)]
    return [*means, Measure("gradient_norm", norm), *measures]


def imitate(part: Part, actions: int, learner: Learner, total: Tensor) -> Tensor:
    """This part's share of Eq. 2: cross-entropy of the data's tokens under π_φ."""
    module = learner.models.behaviour.module.train()
    with learner.run.accelerator.autocast():
        scores = module(part.tokens)
    result = token_mean_cross_entropy(logprobs_BT=scores.logprobs_BT, mask_BT=part.is_action_BT)
    share = result.loss * result.token_count / actions
    total += share.detach().cpu()
    return share


class Judged(NamedTuple):
    """A part, and what each of its actions is worth."""

    part: Part
    targets_N: Tensor
    is_known_N: Tensor
    choices_NV: Tensor


def learn_values(judged: Judged, known: int, learner: Learner, total: Tensor) -> Tensor:
    """This part's share of Eq. 3: weighted cross-entropy of p_θ."""
    part, targets_N, is_known_N, choices_NV = judged
    assert learner.models.likelihood is not None
    module = learner.models.likelihood.module
    module.without_dropout()
    with learner.run.accelerator.autocast():
        logprobs_NV = module.action_logprobs(part.tokens, part.is_action_BT)
    result = likelihood_loss(
        logprobs_NV=logprobs_NV[is_known_N],
        actions_N=part.actions()[is_known_N],
        targets_N=targets_N[is_known_N],
        choices_NV=choices_NV[is_known_N],
        dummy=learner.data.dummy,
    )
    share = result.loss * is_known_N.sum() / known
    total += share.detach().cpu()
    return share


@torch.no_grad()
def judge(
    episodes: Sequence[Episode], parts: Sequence[Part], learner: Learner
) -> tuple[list[Judged], list[Measure]]:
    """The Bellman probability target of every action, by p_θ̄ and π_φ of the *next* state.

    Every state but an episode's first is the next one of the action before it, so each goes
    through both models once.
    """
    config, data = learner.config, learner.data
    gammas = (config.gamma, config.gamma if config.utterance_gamma == "gamma" else 1.0)
    seen = [see(episodes, part, learner) for part in parts]
    columns = [
        gather_actions(episodes, parts, column)
        for column in zip(*(one.local for one in seen), strict=True)
    ]
    targets: list[Tensor] = []
    known: list[Tensor] = []
    sums = torch.zeros(len(SUMS))
    for number, episode in enumerate(episodes):
        way = transitions(episode, data.reward_map, gamma=gammas[0], utterance_gamma=gammas[1])
        is_inside_N = way.is_inside_N & (config.backup == "utterance")
        values_N = values_along(
            LocalValues(*(column[number] for column in columns)),
            rewards_N=way.rewards_N,
            discounts_N=way.discounts_N,
            is_inside_N=is_inside_N,
            beta=config.backup_beta,
        )
        following_N = next_values(episode, values_N, data.reward_map)
        is_known_N = way.is_known_N
        result = bellman_targets(
            rewards_N=way.rewards_N[is_known_N],
            discounts_N=way.discounts_N[is_known_N],
            next_values_N=following_N[is_known_N],
        )
        targets.append(torch.zeros_like(values_N).masked_scatter(is_known_N, result.targets_N))
        known.append(is_known_N)
        count = is_known_N.sum()
        start = data.reward_map.from_unit(float(values_N[0].clamp(max=1.0)))
        shares = (result.targets_N.mean(), result.clipped_low, result.clipped_high)
        per_action = [count, *(share.nan_to_num() * count for share in shares)]
        sums += torch.tensor([*per_action, 1.0, start, sum(episode.rewards)])
    pairs = zip(
        parts,
        scatter_actions(episodes, parts, targets),
        scatter_actions(episodes, parts, known),
        (one.choices_NV for one in seen),
        strict=True,
    )
    device = learner.models.behaviour.device
    judged = [Judged(p, t.to(device), k.to(device), c) for p, t, k, c in pairs if k.any()]
    return judged, summarise(learner.run.sum(sums))


SUMS = ("actions", "target", "clipped_low", "clipped_high", "episodes", "start_value", "return")
BOTH_LOSSES = ["likelihood_loss", "loss"]


def summarise(sums: Tensor) -> list[Measure]:
    """Means over known actions, and over episodes."""
    actions, target, low, high, episodes, start, total = sums.tolist()
    return [
        Measure("target_mean", target / actions),
        Measure("target_clipped_low", low / actions),
        Measure("target_clipped_high", high / actions),
        Measure("start_value", start / episodes),
        Measure("data_return", total / episodes),
    ]


class Seen(NamedTuple):
    """What the slow copy and the behaviour policy say of a part's states."""

    local: LocalValues
    choices_NV: Tensor


def see(episodes: Sequence[Episode], part: Part, learner: Learner) -> Seen:
    """What actions are worth in every state in which the agent writes a token."""
    models, support = learner.models, learner.config.support
    assert models.target is not None
    models.behaviour.module.without_dropout()
    with learner.run.accelerator.autocast():
        behaviour_NV = models.behaviour.module.action_logprobs(part.tokens, part.is_action_BT)
        target_NV = models.target.module.action_logprobs(part.tokens, part.is_action_BT)
    never = models.behaviour.encoder.placeholder_ids
    choices_NV = choices_of(episodes, part, vocabulary=behaviour_NV.shape[1], never=never)
    support_NV = choices_NV & support_mask(
        logprobs_NV=behaviour_NV, top_p=support.top_p, min_probability=support.min_probability
    )
    local = local_values(
        likelihood_logprobs_NV=target_NV,
        behaviour_logprobs_NV=behaviour_NV,
        support_NV=support_NV,
        actions_N=part.actions(),
        floor=support.floor,
        beta=learner.config.backup_beta,
    )
    return Seen(local, choices_NV)
