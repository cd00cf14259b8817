"""Offline ArCHer's three phases: what answers are worth, what moves, and what survives a kill."""

from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.archer.critic import (
    LOSSES,
    ArcherContext,
    compute_targets,
    critic_loss,
    mark_completions,
)
from forethought.algorithms.archer.train import (
    CRITIC,
    actor_loss,
    compute_weights,
    plan_archer,
    summarize,
    train_archer,
)
from forethought.configs.file import dump_config, load_any_config
from forethought.configs.parts import PromptConfig
from forethought.errors import ConfigError
from forethought.generation.huggingface import load_policy
from forethought.offline.dataset import load_episodes
from forethought.offline.episodes import Episode, lay_out, scatter_actions
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task
from forethought.runs.metrics import read_metrics
from forethought.training.behavior_cloning import cloning_loss
from forethought.value_guided.models import HEADS_FILE, PolicyWithValues
from tests.unit.algorithms.crossing import cut_after, straight_on
from tests.unit.algorithms.offline_runs import (
    OneProcess,
    assert_resumed_equals_never_stopped,
    same,
    stop_in,
    weights,
)


@pytest.fixture
def config(offline: dict[str, Any]) -> ArcherConfig:
    """Two updates of each phase, a checkpoint after every one."""
    epochs = {"bc_epochs": 0.2, "critic_epochs": 0.2, "actor_epochs": 0.2}
    return ArcherConfig(gamma=0.9, beta=2.0, checkpoint_every=1, **epochs, **offline)


def learner_of(config: ArcherConfig) -> ArcherContext:
    """With a critic that tells states and answers apart."""
    models = PolicyWithValues(
        load_policy(config.model, slots=1), policy_folder="", values_folder=CRITIC, acting=None
    )
    models.begin("values", seed=0)
    assert models.values is not None
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in models.values.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return ArcherContext(models, config, OneProcess())  # type: ignore[arg-type]


def episodes_of(learner: ArcherContext, count: int) -> list[Episode]:
    data = learner.config.data
    return load_episodes(data, learner.models.policy, lambda _: True)[:count]


def by_hand(episode: Episode, learner: ArcherContext) -> list[tuple[float, float, float]]:
    """Target, min(Q̄1, Q̄2) and V of each answer, by forward passes over its own tokens alone."""
    critic = learner.models.values
    assert critic is not None
    heads = critic.value_head

    def hidden(ids: tuple[int, ...]) -> torch.Tensor:
        critic.trunk.model(input_ids=torch.tensor([ids]))
        return critic.trunk.last_hidden()[0, -1]

    slow: list[float] = []
    values: list[float] = []
    with torch.no_grad():
        for row in episode.rows:
            prompt, answer = row.prompt_ids, row.completion_ids
            values.append(float(heads.value(hidden(prompt))))
            within = hidden((*prompt, *answer[:-1]))
            both = [head(within)[answer[-1]] for head in (heads.slow_first, heads.slow_second)]
            slow.append(float(min(both)))
    following = [*values[1:], 0.0]
    targets = [r + 0.9 * value for r, value in zip(episode.rewards, following, strict=True)]
    return list(zip(targets, slow, values, strict=True))


def at_last_tokens(episode: Episode, numbers: list[float]) -> torch.Tensor:
    ends = torch.tensor(episode.completion_lengths).cumsum(0) - 1
    return torch.zeros(episode.actions).index_put((ends,), torch.tensor(numbers))


def test_targets_and_weights(config: ArcherConfig) -> None:
    """Each against forward passes of its own: one walk to the goal, one into the pit."""
    learner = learner_of(config)
    episodes = episodes_of(learner, 2)
    policy = learner.models.policy
    parts = lay_out(episodes, policy.encoder, policy.device, 120)
    answers = mark_completions(episodes, parts, policy.device)
    assert len(parts) > 1
    expected = [by_hand(episode, learner) for episode in episodes]
    flat = torch.tensor([numbers for one in expected for numbers in one])
    assert (flat.std(0) > 0.02).all()  # or nothing was told apart
    advantages = flat[:, 1] - flat[:, 2]
    cap = exp(2.0 * float(advantages.mean()))
    learner = learner._replace(config=replace(config, weight_cap=cap))
    judged, sums = compute_targets(episodes, answers, learner)
    weighted, shown = compute_weights(answers, learner)
    weights = [[min(cap, exp(2.0 * (q - v))) for _, q, v in one] for one in expected]
    columns = [*([list(column) for column in zip(*one, strict=True)][:2] for one in expected)]
    for place, found in (
        (0, [one.targets_U for one in judged]),
        (1, [one.slow_U for one in judged]),
        (2, [one.weights_U for one in weighted]),
    ):
        numbers = weights if place == 2 else [column[place] for column in columns]
        spread = [at_last_tokens(e, one) for e, one in zip(episodes, numbers, strict=True)]
        placed = scatter_actions(episodes, parts, spread)
        for one, found_U, numbers_N in zip(answers, found, placed, strict=True):
            torch.testing.assert_close(found_U, numbers_N[one.is_last_N], atol=3e-4, rtol=1e-3)
    named = {measure.name: measure.value for measure in summarize(shown)}
    assert named["advantage_mean"] == pytest.approx(float(advantages.mean()), abs=1e-3)
    assert named["advantage_std"] == pytest.approx(float(advantages.std(correction=0)), abs=1e-3)
    all_weights = torch.tensor([weight for one in weights for weight in one])
    capped = (advantages > advantages.mean()).float().mean()
    assert 0 < float(capped) < 1
    assert named["capped_weights"] == pytest.approx(float(capped))
    share = all_weights.sum() ** 2 / (len(all_weights) * all_weights.square().sum())
    assert named["effective_share"] == pytest.approx(float(share), abs=1e-3)
    assert float(sums[0] / sums[1]) == pytest.approx(float(flat[:, 0].mean()), abs=1e-3)


@pytest.mark.parametrize("phase", ["critic", "actor"])
def test_parts_add_up(phase: str, config: ArcherConfig) -> None:
    """Loss and gradient of a batch, whole and in parts; with an answer that nobody judged."""
    learner = learner_of(config)
    cut = replace(episodes_of(learner, 1)[0], terminated=False)
    episodes = [*episodes_of(learner, 3), cut]
    policy, critic = learner.models.policy, learner.models.values
    assert critic is not None
    learner.models.begin("values" if phase == "critic" else "policy", seed=0)
    found: list[tuple[float, torch.Tensor]] = []
    for most in (4096, 120):
        parts = lay_out(episodes, policy.encoder, policy.device, most)
        answers = mark_completions(episodes, parts, policy.device)
        totals, total = torch.zeros(len(LOSSES)), torch.zeros(())
        if phase == "critic":
            module, known = critic, sum(one.known_completions for one in episodes)
            assert known == 15
            judged, _ = compute_targets(episodes, answers, learner)
            losses = [critic_loss(one, known, learner, totals) for one in judged]
            total = totals[0]
        else:
            module, tokens = policy.module, sum(one.actions for one in episodes)
            tokens -= cut.completion_lengths[-1]
            weighted, shown = compute_weights(answers, learner)
            assert shown[0].item() == 15
            losses = [actor_loss(one, tokens, learner, total) for one in weighted]
        module.zero_grad()
        torch.stack(losses).sum().backward()
        grads = [p.grad.flatten() for p in module.parameters() if p.grad is not None]
        found.append((float(total), torch.cat(grads)))
    (one, one_gradient), (other, other_gradient) = found
    assert one == pytest.approx(other, rel=1e-4)
    torch.testing.assert_close(one_gradient, other_gradient, atol=1e-5, rtol=1e-3)
    assert one_gradient.abs().max() > 1e-3


def test_without_beta_the_policy_imitates(config: ArcherConfig) -> None:
    learner = learner_of(replace(config, beta=0.0))
    episodes = episodes_of(learner, 3)
    policy, tokens = learner.models.policy, sum(one.actions for one in episodes)
    (part,) = lay_out(episodes, policy.encoder, policy.device, 4096)
    (weighted,), _ = compute_weights(mark_completions(episodes, [part], policy.device), learner)
    found = actor_loss(weighted, tokens, learner, torch.zeros(()))
    expected = cloning_loss(
        part.tokens, part.is_action_BT, tokens, policy, learner.run, torch.zeros(())
    )
    assert found.item() == pytest.approx(expected.item())


# Whole runs


POLICY, TRUNK = "model.safetensors", f"{CRITIC}/model.safetensors"
HEADS = f"{CRITIC}/{HEADS_FILE}"


def test_what_moves_in_which_phase(config: ArcherConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_in(5, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train_archer(config)
    run = Path(config.output)  # its checkpoints: in the middle of the second phase, and behind it
    assert same(weights(run, 3, POLICY), weights(run, 4, POLICY))
    assert not same(weights(run, 3, TRUNK), weights(run, 4, TRUNK))
    before, critic, policy = weights(run, 3, HEADS), weights(run, 4, HEADS), weights(run, 4, POLICY)
    assert not torch.equal(before["value.2.weight"], critic["value.2.weight"])
    for name in ("first.2.weight", "second.2.bias"):
        slow = before[f"slow_{name}"]
        torch.testing.assert_close(critic[f"slow_{name}"], slow + 0.1 * (critic[name] - slow))
    trunk = weights(run, 4, TRUNK)
    train_archer(config, existing="resume")
    assert same(critic, weights(run, 6, HEADS))
    assert same(trunk, weights(run, 6, TRUNK))
    learned = weights(run, 6, POLICY)
    assert not same(policy, learned)
    log = read_metrics(run / "metrics.jsonl")
    assert log.column("loss").steps.tolist() == [1, 2]
    assert log.column("critic_loss").steps.tolist() == [3, 4]
    assert log.column("actor_loss").steps.tolist() == [5, 6]
    acting = load_policy(str(run / "checkpoints/step_6/model"), slots=1)
    now = dict(acting.module.model.named_parameters())
    assert all(torch.equal(now[name], one) for name, one in learned.items() if name in now)


@pytest.mark.parametrize(
    "stopped_in",
    [
        pytest.param(2, id="in the first phase"),
        pytest.param(3, id="behind the first phase"),
        pytest.param(4, id="in the second phase"),
        pytest.param(5, id="behind the second phase"),
        pytest.param(6, id="in the third phase"),
    ],
)
def test_resumed_equals_never_stopped(
    stopped_in: int, config: ArcherConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (POLICY, TRUNK, HEADS)
    assert_resumed_equals_never_stopped(train_archer, config, stopped_in, parts, 6, monkeypatch)


def test_what_was_cut(config: ArcherConfig, crossing: Task, tmp_path: Path) -> None:
    """Its last answer is not learned from; an episode of one cut answer has nothing to give."""
    walk = next(straight_on(crossing, range(1)))
    path = tmp_path / "cut.parquet"
    write_shard(path, [cut_after(walk, 1), cut_after(walk, 2), walk])
    config = replace(config, data=str(path), batch_size=1, critic_epochs=1.0, actor_epochs=1.0)
    train_archer(replace(config, bc_epochs=0.0))
    write_shard(path, [cut_after(walk, 1)])
    with pytest.raises(ConfigError, match="holds no step whose outcome is known"):
        train_archer(config, existing="overwrite")


# The settings


def test_the_plan(config: ArcherConfig) -> None:
    plan = "\n".join(plan_archer(config))
    assert "2 of behavior, then 2 of critic, then 2 of actor; of 8 episodes each" in plan
    [memory] = [line for line in plan.splitlines() if line.startswith("memory")]
    assert "critic" in memory


def test_settings_come_back_equal(config: ArcherConfig, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_any_config(tmp_path / "config.yaml") == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expectile": 1.0}, "expectile is 1.0 — expected between 0 and 1"),
        ({"beta": -1.0}, "beta is -1.0 — expected 0 or more"),
        ({"weight_cap": 0.5}, "weight_cap is 0.5 — expected 1 or more"),
        ({"gamma": 1.1}, r"gamma is 1\.1"),
        ({"actor_epochs": 0.0}, r"actor_epochs is 0\.0 — expected above 0"),
        ({"prompt": PromptConfig(return_bins=4)}, r"prompt\.return_bins is 4 — expected 0"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ArcherConfig(**changes)
