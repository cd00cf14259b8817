"""Q-Transformer: Q-learning in which each token of an action is a dimension of it, maximized on its
own (Chebotar et al. 2023). The tokens are the MDP of `episodes.py`, as Q-SFT's are.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from forethought.algorithms.q_transformer.config import QTransformerConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.q_transformer import q_transformer_loss, q_transformer_targets, q_values
from forethought.offline.dataset import stored, stored_earned
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
from forethought.targets.reward_map import RewardMap, StepMaps, fit_reward_map, require_in_range
from forethought.targets.token_values import monte_carlo_targets
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
from forethought.training.plan import plan_offline
from forethought.training.run import Existing, Run, open_run
from forethought.training.start import start
from forethought.types import Metric
from forethought.value_guided.models import Twin, load_twin, twin_of

TARGET = "target"
"""Folder of the target network, inside the folder of the model that acts."""

Phase = Literal["values"]


class QTransformerModels:
    """A language model whose logits are log-odds of values, and its target network; satisfies
    `Trainable`."""

    def __init__(self, policy: HuggingFacePolicy, target: Twin) -> None:
        self.policy = policy
        self.target = target
        target.module.requires_grad_(requires_grad=False)
        target.module.eval()

    @property
    def module(self) -> nn.Module:
        """Its parameters that require a gradient are trained."""
        return self.policy.module

    def save(self, folder: Path) -> None:
        """Writes a model that any language model's loader reads, and the target network in it."""
        self.policy.save(folder)
        self.target.save(folder / TARGET, self.policy)


class QTransformerContext(NamedTuple):
    """What every update works with."""

    models: QTransformerModels
    maps: StepMaps
    """Returns become values of 0 to 1."""
    config: QTransformerConfig
    run: Run


def train_q_transformer(config: QTransformerConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can fix: settings, model, data, disk.
    """
    with open_run(config, existing, can_shard=False) as run:
        policy = start(config, run, slots=1, critic=False).policy
        target = twin_of(policy)
        if run.checkpoint is not None:
            target = load_twin(run.checkpoint / MODEL_DIR / TARGET, policy)
        maps = find_maps(config)
        episodes = read_episodes(config, policy, run, lambda one: one.known_actions > 0)
        models = QTransformerModels(policy, target)
        context = QTransformerContext(models, maps, config, run)
        phases = Phases[Phase]("q-transformer", models, begin, partial(update, context=context))
        run_phases(phases, plan_stages(config, len(episodes)), episodes, config, run)
        return run.folder.path


def find_maps(config: QTransformerConfig) -> StepMaps:
    """The map that the settings declare, or else the narrowest one of the data.

    Raises:
        ConfigError: all returns are equal, or one is outside the declared map.
        StorageError: a shard is refused.
    """
    path = Path(config.data)
    if config.return_min is None or config.return_max is None:
        return StepMaps((fit_reward_map(stored_earned(path), gamma=config.gamma),))
    declared = RewardMap(config.return_min, config.return_max)
    for number, trajectory in enumerate(stored(path)):
        name = f"{path}, trajectory {number}"
        require_in_range(trajectory, declared, gamma=config.gamma, name=name)
    return StepMaps((declared,))


def plan_stages(config: QTransformerConfig, episodes: int) -> list[Stage[Phase]]:
    """The one phase with its updates, at least one."""
    passes: list[tuple[Phase, float]] = [("values", config.epochs)]
    return stages_of(passes, episodes=episodes, batch_size=config.batch_size)


def plan_q_transformer(config: QTransformerConfig) -> list[str]:
    """What the run will do and need, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    (one,) = find_maps(config).maps
    return plan_offline(
        config,
        partial(plan_stages, config),
        lambda model: {"target": 4 * model.trained},
        [f"reward map  returns from {one.lowest:g} to {one.highest:g} become 0 to 1"],
        passes=1,
    )


def begin(phase: Phase) -> None:
    """The target network is there before the one phase begins."""
    del phase


# An update

LOSSES = ("q_transformer_loss", "q_loss", "conservative_loss")


class TargetBatch(NamedTuple):
    """Rows of one micro-batch, and the target of each of their tokens; [N] each."""

    rows: RowBatch
    targets_N: Tensor
    is_known_N: Tensor


def update(
    batch: Sequence[Episode], phase: Phase, updater: Updater, context: QTransformerContext
) -> list[Metric]:
    """One optimizer step on a global batch; this process does its share of the episodes."""
    del phase  # There is one.
    models, _, config, run = context
    policy = models.policy
    mine = batch[run.process :: run.processes]
    batches = lay_out(mine, policy.encoder, policy.device, config.compute.micro_batch_tokens)
    found, sums = compute_targets(mine, batches, context)
    known = sum(episode.known_actions for episode in batch)
    totals = torch.zeros(len(LOSSES))
    losses: list[Callable[[], Tensor]] = [
        partial(value_loss, one, known, context, totals) for one in found
    ]
    norm = updater.step(losses)
    policy.weights_changed()
    models.target.follow(policy.module, config.polyak_tau)
    means = zip(LOSSES, run.sum(totals).tolist(), strict=True)
    shown = [Metric(name, mean) for name, mean in means]
    return [*shown, Metric("gradient_norm", norm), *target_metrics(run.sum(sums))]


def value_loss(
    batch: TargetBatch, known: int, context: QTransformerContext, totals: Tensor
) -> Tensor:
    """This micro-batch's share of the loss."""
    rows, targets_N, is_known_N = batch
    module = context.models.policy.module
    module.without_dropout()
    known_N = is_known_N.nonzero()[:, 0]

    def weigh(logits_nV: Tensor, known_n: Tensor) -> tuple[Tensor, ...]:
        result = q_transformer_loss(
            q_NV=q_values(logits_nV),
            actions_N=rows.actions()[known_n],
            targets_N=targets_N[known_n],
            conservative_weight=context.config.conservative_weight,
        )
        return tuple(one[None] * len(known_n) for one in result)

    with context.run.autocast():
        hidden_NH = module.action_hidden(rows.tokens, rows.is_action_BT)
        sums = module.in_chunks(weigh, hidden_NH[known_N], known_N)
    shares = torch.stack([one.sum() for one in sums]) / known
    totals += shares.detach().cpu()
    return shares[0]


@torch.no_grad()
def compute_targets(
    episodes: Sequence[Episode], batches: Sequence[RowBatch], context: QTransformerContext
) -> tuple[list[TargetBatch], Tensor]:
    """Targets of all tokens, and sums of what is shown of them (`TARGET_SUMS`).

    Every state but an episode's first is the next one of the token before it, so each goes
    through the target network once.
    """
    best = gather_actions(episodes, batches, [best_values(rows, context) for rows in batches])
    targets: list[Tensor] = []
    known: list[Tensor] = []
    sums = torch.zeros(len(TARGET_SUMS))
    for episode, best_N in zip(episodes, best, strict=True):
        moves = transitions(episode, context.maps, gamma=context.config.gamma, utterance_gamma=1.0)
        is_known_N = moves.is_known_N
        found_N = q_transformer_targets(
            rewards_N=moves.rewards_N[is_known_N],
            discounts_N=moves.discounts_N[is_known_N],
            next_best_N=next_values(episode, best_N, context.maps)[is_known_N],
            returns_N=least_returns(episode, context)[is_known_N],
        )
        targets.append(torch.zeros_like(best_N).masked_scatter(is_known_N, found_N))
        known.append(is_known_N)
        start = context.maps.at(episode.first_step).from_unit(float(best_N[0]))
        counts = (float(found_N.sum()), float(is_known_N.sum()), start)
        sums += torch.tensor([*counts, sum(episode.rewards), 1.0])
    columns = zip(
        batches,
        scatter_actions(episodes, batches, targets),
        scatter_actions(episodes, batches, known),
        strict=True,
    )
    device = context.models.policy.device
    batches_found = [TargetBatch(r, t.to(device), k.to(device)) for r, t, k in columns if k.any()]
    return batches_found, sums


def best_values(rows: RowBatch, context: QTransformerContext) -> Tensor:
    """max_a Q̄(s, a) of the states of a micro-batch, by the target network: [N]."""
    target = context.models.target.module

    def best(logits_nV: Tensor) -> tuple[Tensor]:
        return (q_values(logits_nV).amax(1),)

    with context.run.autocast():
        return target.in_chunks(best, target.action_hidden(rows.tokens, rows.is_action_BT))[0]


def least_returns(episode: Episode, context: QTransformerContext) -> Tensor:
    """What followed each token in the data, mapped: [N]. Behind a cut whose rest nobody knows
    there is at least a value of 0."""
    config, maps = context.config, context.maps
    moves = transitions(episode, maps, gamma=config.gamma, utterance_gamma=1.0)
    value = episode.bootstrap_value
    after = 0.0 if value is None else maps.at(episode.last_step + 1).to_unit(value)
    return monte_carlo_targets(
        rewards_N=moves.rewards_N, discounts_N=moves.discounts_N, last_value=after
    )
