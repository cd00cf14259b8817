"""Q-Transformer: which state gives which target, what moves, and what survives a kill."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file

from forethought.algorithms.q_transformer.config import QTransformerConfig
from forethought.algorithms.q_transformer.train import (
    QTransformerContext,
    QTransformerModels,
    compute_targets,
    find_maps,
    least_returns,
    plan_q_transformer,
    train_q_transformer,
)
from forethought.configs.file import dump_config, load_any_config
from forethought.configs.parts import PromptConfig
from forethought.errors import ConfigError
from forethought.generation.huggingface import load_policy
from forethought.losses.q_transformer import OFFSET
from forethought.offline.dataset import load_episodes
from forethought.offline.episodes import Episode, lay_out, scatter_actions
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task
from forethought.training.run import Run
from forethought.value_guided.models import twin_of
from tests.unit.algorithms.crossing import cut_after, straight_on
from tests.unit.algorithms.offline_runs import (
    OneProcess,
    assert_resumed_equals_never_stopped,
    same,
    weights,
)


@pytest.fixture
def config(offline: dict[str, Any]) -> QTransformerConfig:
    """Four updates, a checkpoint after every other one."""
    return QTransformerConfig(epochs=0.4, gamma=0.9, checkpoint_every=2, **offline)


def context_of(config: QTransformerConfig) -> QTransformerContext:
    """As much of one as targets ask for; the target network tells states and tokens apart."""
    policy = load_policy(config.model, slots=1)
    target = twin_of(policy)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in target.module.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    models = QTransformerModels(policy, target)
    return QTransformerContext(models, find_maps(config), config, cast(Run, OneProcess()))


def targets_by_hand(episode: Episode, context: QTransformerContext) -> list[float]:
    """By a pass of its own for each state."""
    policy, gamma = context.models.policy, context.config.gamma
    never = list(policy.encoder.placeholder_ids)
    best: list[float] = []
    rewards: list[float] = []
    discounts: list[float] = []
    for row, reward in zip(episode.rows, episode.rewards, strict=True):
        prompt, answer = row.prompt_ids, row.completion_ids
        for length in range(len(answer)):
            ids = torch.tensor([(*prompt, *answer[:length])])
            with torch.no_grad():
                logits_V = context.models.target.module.model(input_ids=ids).logits[0, -1]
            logits_V[never] = -torch.inf
            best.append(float(torch.sigmoid(logits_V.max() - OFFSET)))
        rewards += [0.0] * (len(answer) - 1) + [reward]
        discounts += [1.0] * (len(answer) - 1) + [gamma]
    targets, followed = [0.0] * len(rewards), 0.0
    discounts[-1], best = 0.0, [*best, 0.0]
    for n in reversed(range(len(rewards))):
        followed = rewards[n] + discounts[n] * followed
        targets[n] = max(rewards[n] + discounts[n] * best[n + 1], followed)
    return targets


def test_targets_are_the_best_of_the_next_dimension_or_what_followed(
    config: QTransformerConfig,
) -> None:
    context = context_of(config)
    policy = context.models.policy
    # One to the goal, one into the pit.
    episodes = load_episodes(config.data, policy, lambda _: True)[:2]
    parts = lay_out(episodes, policy.encoder, policy.device, 120)
    found, sums = compute_targets(episodes, parts, context)
    expected = [torch.tensor(targets_by_hand(episode, context)) for episode in episodes]
    assert len(found) == len(parts) > 1
    for one, numbers_N in zip(found, scatter_actions(episodes, parts, expected), strict=True):
        torch.testing.assert_close(one.targets_N, numbers_N, atol=2e-4, rtol=1e-3)
    flat_N = torch.cat(expected)
    assert flat_N.std() > 0.05  # or nothing was told apart
    assert float(sums[0] / sums[1]) == pytest.approx(float(flat_N.mean()), abs=1e-3)


MODEL, TARGET = "model.safetensors", "target/model.safetensors"


def test_the_target_network_follows(config: QTransformerConfig) -> None:
    """Embeddings, which every update moves: θ̄ + 0.1 (θ - θ̄)."""
    run = train_q_transformer(replace(config, checkpoint_every=1, epochs=0.2))
    before, after = weights(run, 1, TARGET), weights(run, 2, TARGET)
    fast = weights(run, 2, MODEL)
    assert not same(weights(run, 1, MODEL), fast)
    for name in before:
        moved = before[name] + 0.1 * (fast[name] - before[name])
        torch.testing.assert_close(after[name], moved)


def test_resumed_equals_never_stopped(
    config: QTransformerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (MODEL, TARGET)
    assert_resumed_equals_never_stopped(train_q_transformer, config, 4, parts, 4, monkeypatch)


def test_it_acts_as_any_language_model(config: QTransformerConfig, tmp_path: Path) -> None:
    run = train_q_transformer(replace(config, epochs=0.1))
    load_policy(str(run / "checkpoints/step_1/model"), slots=1).save(tmp_path / "again")
    assert same(weights(run, 1, MODEL), load_file(tmp_path / "again" / MODEL))


def test_what_was_cut(config: QTransformerConfig, crossing: Task, tmp_path: Path) -> None:
    """Its last token has no target; the others' least return is 0 behind the cut."""
    walk = cut_after(next(straight_on(crossing, range(1))), 2)
    write_shard(tmp_path / "cut.parquet", [walk, *straight_on(crossing, range(2))])
    config = replace(config, data=str(tmp_path / "cut.parquet"), batch_size=3)
    context = context_of(config)
    policy = context.models.policy
    episodes = load_episodes(config.data, policy, lambda _: True)
    assert least_returns(episodes[0], context).tolist() == [0.0] * episodes[0].actions
    parts = lay_out(episodes, policy.encoder, policy.device, 10**6)
    found, _ = compute_targets(episodes, parts, context)
    unknown = sum(int((~one.is_known_N).sum()) for one in found)
    assert unknown == 1
    train_q_transformer(config)


def test_the_plan(config: QTransformerConfig) -> None:
    plan = "\n".join(plan_q_transformer(config))
    assert "4 of values; of 8 episodes each" in plan
    assert "returns from 0 to 1 become 0 to 1" in plan
    assert "target" in plan


def test_a_declared_range(config: QTransformerConfig) -> None:
    (one,) = find_maps(replace(config, return_min=-1.0, return_max=3.0)).maps
    assert (one.lowest, one.highest) == (-1.0, 3.0)
    with pytest.raises(ConfigError, match="trajectory"):
        find_maps(replace(config, return_min=0.0, return_max=0.5))


def test_settings_come_back_equal(config: QTransformerConfig, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_any_config(tmp_path / "config.yaml") == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0.0}, r"epochs is 0\.0 — expected above 0"),
        ({"conservative_weight": -1.0}, r"conservative_weight is -1\.0 — expected 0 or more"),
        ({"gamma": 1.1}, r"gamma is 1\.1"),
        ({"return_min": 0.0}, "both or neither"),
        ({"return_min": 1.0, "return_max": 1.0}, "above return_min"),
        ({"prompt": PromptConfig(return_bins=4)}, r"prompt\.return_bins is 4 — expected 0"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        QTransformerConfig(**changes)
