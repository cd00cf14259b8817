"""ILQL's two phases: which state gives which target, what moves, and what survives a kill."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file

from forethought.algorithms.ilql.config import ILQLConfig
from forethought.algorithms.ilql.train import (
    ILQLContext,
    compute_targets,
    known_actions,
    plan_ilql,
    train_ilql,
)
from forethought.configs.acting import ValueActingConfig
from forethought.configs.file import dump_config, load_any_config
from forethought.configs.parts import PromptConfig
from forethought.errors import ConfigError
from forethought.generation.huggingface import load_policy
from forethought.offline.dataset import load_episodes
from forethought.offline.episodes import Episode, lay_out, scatter_actions
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task
from forethought.runs.metrics import read_metrics
from forethought.training.run import Run
from forethought.value_guided.models import HEADS_FILE, VALUES, PolicyWithValues, ValueModel
from forethought.value_guided.policy import load_value_weighted
from tests.unit.algorithms.crossing import cut_after, straight_on
from tests.unit.algorithms.offline_runs import (
    OneProcess,
    assert_resumed_equals_never_stopped,
    same,
    weights,
)

LEAST = 0.004
"""Some tokens of a random policy are more likely, most are less."""


@pytest.fixture
def config(offline: dict[str, Any]) -> ILQLConfig:
    """Four updates of each phase, a checkpoint after every other one."""
    acting = ValueActingConfig(beta=4.0)
    return ILQLConfig(
        bc_epochs=0.4, epochs=0.4, gamma=0.9, checkpoint_every=2, acting=acting, **offline
    )


def learner_of(config: ILQLConfig) -> ILQLContext:
    """As much of one as judging asks for; with values that tell states and tokens apart."""
    models = PolicyWithValues(
        load_policy(config.model, slots=1), policy_folder="", values_folder=VALUES, acting=None
    )
    models.begin("values", seed=0)
    assert models.values is not None
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in models.values.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return ILQLContext(models, config, cast(Run, OneProcess()))


def by_hand(values: ValueModel, ids: tuple[int, ...]) -> tuple[float, torch.Tensor]:
    """V of the state that these tokens are, and min(Q̄1, Q̄2) [V], by a pass of its own."""
    with torch.no_grad():
        values.trunk.model(input_ids=torch.tensor([ids]))
        hidden = values.trunk.last_hidden()[0, -1]
        heads = values.value_head
        slow_V = torch.minimum(heads.slow_first(hidden), heads.slow_second(hidden))
        return float(heads.value(hidden)), slow_V


def likelihoods(learner: ILQLContext, ids: tuple[int, ...]) -> torch.Tensor:
    """π_φ of the next token, [V]."""
    with torch.no_grad():
        logits = learner.models.policy.module.model(input_ids=torch.tensor([ids])).logits
        return logits[0, -1].softmax(-1)


def targets_by_hand(episode: Episode, learner: ILQLContext) -> tuple[list[float], list[float]]:
    """Of Q, and of V where that is learned."""
    config, values = learner.config, learner.models.values
    assert values is not None
    prefixes: list[tuple[int, ...]] = []
    tokens: list[int] = []
    rewards: list[float] = []
    discounts: list[float] = []
    for row, reward in zip(episode.rows, episode.rewards, strict=True):
        prompt, answer = row.prompt_ids, row.completion_ids
        prefixes += [(*prompt, *answer[:length]) for length in range(len(answer))]
        tokens += answer
        rewards += [0.0] * (len(answer) - 1) + [reward]
        discounts += [1.0] * (len(answer) - 1) + [config.gamma]
    never = list(learner.models.policy.encoder.placeholder_ids)
    seen = [by_hand(values, prefix) for prefix in prefixes]
    own = [float(slow_V[token]) for (_, slow_V), token in zip(seen, tokens, strict=True)]
    targets = [0.0] * len(rewards)
    for n in reversed(range(len(rewards))):
        if n == len(rewards) - 1:
            targets[n] = rewards[n]
        elif config.targets == "monte_carlo":
            targets[n] = rewards[n] + discounts[n] * targets[n + 1]
        else:
            value, slow_V = seen[n + 1]
            slow_V[never] = -torch.inf
            least = config.support_min_probability
            slow_V[likelihoods(learner, prefixes[n + 1]) < least] = -torch.inf
            best = value if config.targets == "expectile" else float(slow_V.max())
            targets[n] = rewards[n] + discounts[n] * best
    return targets, own


@pytest.mark.parametrize(
    ("targets", "least"),
    [("expectile", 0.0), ("maximum", 0.0), ("maximum", LEAST), ("monte_carlo", 0.0)],
    ids=["expectile", "maximum", "maximum of what is supported", "monte_carlo"],
)
def test_targets_are_those_of_the_next_state(
    targets: Any, least: float, config: ILQLConfig
) -> None:
    learner = learner_of(replace(config, targets=targets, support_min_probability=least))
    policy = learner.models.policy
    # One to the goal, one into the pit.
    episodes = load_episodes(config.data, policy, lambda _: True)[:2]
    parts = lay_out(episodes, policy.encoder, policy.device, 120)
    judged, sums = compute_targets(episodes, parts, learner)
    expected, own = zip(*(targets_by_hand(episode, learner) for episode in episodes), strict=True)
    assert len(judged) == len(parts) > 1
    for name, numbers in (("targets_N", expected), ("slow_N", own)):
        if name == "slow_N" and targets == "monte_carlo":
            continue  # there is no V to learn
        tensors = [torch.tensor(one) for one in numbers]
        for one, numbers_N in zip(judged, scatter_actions(episodes, parts, tensors), strict=True):
            torch.testing.assert_close(getattr(one, name), numbers_N, atol=2e-4, rtol=1e-3)
    flat = torch.tensor([number for one in expected for number in one])
    assert flat.std() > 0.05  # or nothing was told apart
    assert float(sums[0] / sums[1]) == pytest.approx(float(flat.mean()), abs=1e-3)


BEHAVIOR, TRUNK = "behavior/model.safetensors", "values/model.safetensors"
HEADS = f"values/{HEADS_FILE}"


def test_two_phases(config: ILQLConfig) -> None:
    """An update of π_φ; then its copy and the heads learn, and the slow heads follow."""
    run = train_ilql(replace(config, checkpoint_every=1, bc_epochs=0.1, epochs=0.2))
    log = read_metrics(run / "metrics.jsonl")
    assert log.column("loss").steps.tolist() == [1]
    assert log.column("ilql_loss").steps.tolist() == [2, 3]
    assert same(weights(run, 2, BEHAVIOR), weights(run, 3, BEHAVIOR))
    assert not same(weights(run, 2, TRUNK), weights(run, 3, TRUNK))
    before, after = weights(run, 2, HEADS), weights(run, 3, HEADS)
    assert not torch.equal(before["value.2.weight"], after["value.2.weight"])
    for name in ("first.2.weight", "second.2.bias"):
        slow, fast = before[f"slow_{name}"], after[name]
        torch.testing.assert_close(after[f"slow_{name}"], slow + 0.1 * (fast - slow))


@pytest.mark.parametrize(
    "stopped_in",
    [
        pytest.param(4, id="in the first phase"),
        pytest.param(5, id="between the phases"),
        pytest.param(8, id="in the second phase"),
    ],
)
def test_resumed_equals_never_stopped(
    stopped_in: int, config: ILQLConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (BEHAVIOR, TRUNK, HEADS)
    assert_resumed_equals_never_stopped(train_ilql, config, stopped_in, parts, 8, monkeypatch)


def test_a_model_that_imitates_already_is_left_as_it_is(
    config: ILQLConfig, small_model: Path
) -> None:
    run = train_ilql(replace(config, bc_epochs=0.0, epochs=0.1, targets="maximum"))
    assert same(load_file(small_model / "model.safetensors"), weights(run, 1, BEHAVIOR))
    acting = load_value_weighted(run / "checkpoints/step_1/model", slots=2)
    assert acting.acting == config.acting


def test_what_was_cut(config: ILQLConfig, crossing: Task, tmp_path: Path) -> None:
    """Its last token has no target; where returns are the targets, it has none at all."""
    walk = cut_after(next(straight_on(crossing, range(1))), 2)
    write_shard(tmp_path / "cut.parquet", [walk, *straight_on(crossing, range(2))])
    config = replace(config, data=str(tmp_path / "cut.parquet"), batch_size=3)
    returns = replace(config, targets="monte_carlo")
    cut, *_ = load_episodes(config.data, load_policy(config.model, slots=1), lambda _: True)
    assert known_actions(cut, config) == cut.actions - 1
    assert known_actions(cut, returns) == 0
    train_ilql(config)
    train_ilql(returns, existing="overwrite")
    write_shard(tmp_path / "cut.parquet", [walk])
    with pytest.raises(ConfigError, match="holds no step whose outcome is known"):
        train_ilql(returns, existing="overwrite")


def test_the_plan(config: ILQLConfig) -> None:
    plan = "\n".join(plan_ilql(config))
    assert "4 of behavior, then 4 of values; of 8 episodes each" in plan
    assert "heads" in plan


def test_settings_come_back_equal(config: ILQLConfig, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_any_config(tmp_path / "config.yaml") == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expectile": 1.0}, "expectile is 1.0 — expected between 0 and 1"),
        ({"cql_weight": -1.0}, "cql_weight is -1.0 — expected 0 or more"),
        ({"gamma": 1.1}, r"gamma is 1\.1"),
        ({"support_min_probability": 1.0}, r"support_min_probability is 1\.0 — expected 0 up to 1"),
        ({"support_min_probability": 0.1}, "expected 0 unless targets is maximum"),
        ({"head_learning_rate": 0.0}, r"head_learning_rate is 0\.0"),
        ({"prompt": PromptConfig(return_bins=4)}, r"prompt\.return_bins is 4 — expected 0"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ILQLConfig(**changes)
