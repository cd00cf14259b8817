"""Q-SFT's two phases: which state is asked about what, what moves, and what survives a kill."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import OfflineData, QSFTContext, QSFTModels, load_offline
from forethought.algorithms.q_sft.targets import compute_monte_carlo_targets, compute_targets
from forethought.algorithms.q_sft.train import plan_stages, train_q_sft
from forethought.configs.acting import ActingConfig, SupportConfig
from forethought.configs.file import dump_config, load_any_config
from forethought.configs.parts import PromptConfig
from forethought.errors import ConfigError
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.batching import Example
from forethought.offline.episodes import Episode, lay_out, scatter_actions
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task
from forethought.runs.metrics import read_metrics
from forethought.targets.reward_map import RewardMap, StepMaps, write_reward_map
from forethought.types import Prompt
from forethought.value_guided.policy import Settings, load_reweighted
from tests.unit.algorithms.crossing import cut_after, straight_on
from tests.unit.algorithms.offline_runs import (
    OneProcess,
    assert_resumed_equals_never_stopped,
    same,
    weights,
)


@pytest.fixture
def q_sft_config(offline: dict[str, Any]) -> QSFTConfig:
    """Four updates of each phase, a checkpoint after every other one."""
    acting = ActingConfig(beta=4.0)
    return QSFTConfig(bc_epochs=0.4, epochs=0.4, checkpoint_every=2, acting=acting, **offline)


def unlike(policy: HuggingFacePolicy, models: QSFTModels) -> None:
    """Makes p_θ̄ another distribution than π_φ."""
    assert models.target is not None
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in models.target.module.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    assert policy.module is not models.target.module


def all_logprobs(module: object, policy: HuggingFacePolicy, ids: tuple[int, ...]) -> torch.Tensor:
    """Of what follows these tokens, by a forward pass of its own: [V]."""
    with torch.no_grad():
        logits = module.model(input_ids=torch.tensor([ids])).logits[0, -1]  # type: ignore[attr-defined]
        return torch.log_softmax(module.speakable(logits), -1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_targets_ask_both_models_about_the_next_state(
    gamma: float, q_sft_config: QSFTConfig, crossing: Task, small_model: Path
) -> None:
    """Each target against forward passes over its own prefix, and max p̄/π written out, without
    the residual, on which p̄ puts the most."""
    policy = load_policy(str(small_model), slots=1)
    config = replace(q_sft_config, gamma=gamma, support=SupportConfig(min_probability=0.01))
    data = load_offline(config, crossing, policy)
    models = QSFTModels(policy, Settings(config.acting, config.support), is_joint=False)
    models.begin("likelihood")
    unlike(policy, models)
    residual = prefer_residual_token(models, data)
    learner = QSFTContext(models, data, config, OneProcess())  # type: ignore[arg-type]
    episodes = [data.episodes[0], data.episodes[1]]
    parts = lay_out(episodes, policy.encoder, policy.device, 120)
    judged, measures = compute_targets(episodes, parts, learner)
    expected = [targets_by_hand(episode, models, config, residual) for episode in episodes]
    assert len(judged) == len(parts) > 1
    for one, numbers_N in zip(judged, scatter_actions(episodes, parts, expected), strict=True):
        torch.testing.assert_close(one.targets_N, numbers_N, atol=2e-4, rtol=1e-3)
    flat = torch.cat(expected)
    assert flat.std() > 0.05  # or nothing was told apart
    named = {measure.name: measure.value for measure in measures}
    assert named["target_mean"] == pytest.approx(float(flat.mean()), abs=1e-3)
    assert named["data_return"] == pytest.approx(0.5)  # one to the goal, one into the pit


def prefer_residual_token(models: QSFTModels, data: OfflineData) -> int:
    """It becomes likelier than what is said most; p̄ holds it likelier still."""
    assert data.residual is not None
    assert models.target is not None
    said = [token for answer in data.episodes[0].completions() for token in answer]
    action = max(said, key=said.count)
    for module, factor in ((models.behavior.module, 1.5), (models.target.module, 3.0)):
        projection = module.model.get_output_embeddings()
        assert projection is not None
        with torch.no_grad():
            projection.weight[data.residual] = factor * projection.weight[action]
    return data.residual


def targets_by_hand(
    episode: Episode, models: QSFTModels, config: QSFTConfig, residual: int
) -> torch.Tensor:
    policy, floor = models.behavior, config.support.floor
    assert models.target is not None
    prefixes: list[tuple[int, ...]] = []
    rewards: list[float] = []
    for row, reward in zip(episode.rows, episode.rewards, strict=True):
        prompt, answer = row.prompt_ids, row.completion_ids
        prefixes += [(*prompt, *answer[:length]) for length in range(len(answer))]
        rewards += [0.0] * (len(answer) - 1) + [reward]
    is_last_of_completion = [
        place == length - 1 for length in episode.completion_lengths for place in range(length)
    ]
    targets: list[float] = []
    for number, (reward, ends) in enumerate(zip(rewards, is_last_of_completion, strict=True)):
        if number == len(rewards) - 1:
            targets.append(reward)
            continue
        behavior_V = all_logprobs(policy.module, policy, prefixes[number + 1]).exp()
        target_V = all_logprobs(models.target.module, policy, prefixes[number + 1]).exp()
        known = behavior_V >= config.support.min_probability
        known[behavior_V.argmax()] = True
        known[residual] = False
        value = float((target_V / behavior_V.clamp(min=floor))[known].max())
        targets.append(min(1.0, reward + (config.gamma if ends else 1.0) * value))
    return torch.tensor(targets)


def test_targets_from_returns(q_sft_config: QSFTConfig, crossing: Task, small_model: Path) -> None:
    """All tokens of a walk to the goal are worth γ per step that is left, those into the pit 0."""
    policy = load_policy(str(small_model), slots=1)
    config = replace(q_sft_config, gamma=0.5)
    data = load_offline(config, crossing, policy)
    models = QSFTModels(policy, Settings(config.acting, config.support), is_joint=False)
    models.begin("returns")
    learner = QSFTContext(models, data, config, OneProcess())  # type: ignore[arg-type]
    episodes = [data.episodes[0], data.episodes[1]]
    judged, measures = compute_monte_carlo_targets(
        episodes, lay_out(episodes, policy.encoder, policy.device, 4096), learner
    )
    to_goal = np.repeat([0.125, 0.25, 0.5, 1.0], episodes[0].completion_lengths)
    expected = [torch.tensor(to_goal, dtype=torch.float32), torch.zeros(episodes[1].actions)]
    parts = [one.rows for one in judged]
    for one, numbers_N in zip(judged, scatter_actions(episodes, parts, expected), strict=True):
        torch.testing.assert_close(one.targets_N, numbers_N)
    assert {m.name: m.value for m in measures}["start_value"] == pytest.approx(0.0625)


BEHAVIOR, LIKELIHOOD, TARGET = (
    f"{part}/model.safetensors" for part in ("behavior", "likelihood", "target")
)


def test_two_phases(q_sft_config: QSFTConfig) -> None:
    """An update of π_φ; then p_θ starts from it, learns, and p_θ̄ follows."""
    changes = {"checkpoint_every": 1, "bc_epochs": 0.1, "epochs": 0.2}
    run = train_q_sft(replace(q_sft_config, **changes))  # type: ignore[arg-type]
    log = read_metrics(run / "metrics.jsonl")
    assert log.column("loss").steps.tolist() == [1]
    assert 0.1 < log.column("loss").values[0] < 10  # nats per token, not of the whole batch
    assert log.column("likelihood_loss").steps.tolist() == [2, 3]
    assert same(weights(run, 2, BEHAVIOR), weights(run, 3, BEHAVIOR))
    assert not same(weights(run, 2, LIKELIHOOD), weights(run, 3, LIKELIHOOD))
    slow, fast = weights(run, 2, TARGET), weights(run, 3, LIKELIHOOD)
    for name, now in weights(run, 3, TARGET).items():
        torch.testing.assert_close(now, slow[name] + 0.1 * (fast[name] - slow[name]))


def test_both_learn_from_the_same_batches(q_sft_config: QSFTConfig, small_model: Path) -> None:
    """Joint phases move π_φ, too: on the returns, and on the values behind them."""
    changes = {"checkpoint_every": 1, "mc_epochs": 0.1, "epochs": 0.1, "phases": "joint"}
    run = train_q_sft(replace(q_sft_config, **changes))  # type: ignore[arg-type]
    log = read_metrics(run / "metrics.jsonl")
    assert log.column("loss").steps.tolist() == [1, 2]
    assert log.column("likelihood_loss").steps.tolist() == [1, 2]
    start = load_file(small_model / "model.safetensors")
    behaviors = [start, weights(run, 1, BEHAVIOR), weights(run, 2, BEHAVIOR)]
    for before, after in itertools.pairwise(behaviors):
        assert not same(before, after)
    assert not same(weights(run, 1, LIKELIHOOD), weights(run, 1, BEHAVIOR))


@pytest.mark.parametrize(
    ("phases", "mc_epochs", "epochs", "stopped_in"),
    [
        pytest.param("two", 0.0, 0.4, 4, id="in the first phase"),
        pytest.param("two", 0.0, 0.4, 5, id="between the phases"),
        pytest.param("two", 0.0, 0.4, 8, id="in the second phase"),
        pytest.param("two", 0.2, 0.2, 6, id="on returns"),
        pytest.param("joint", 0.0, 0.5, 4, id="in both at once"),
        pytest.param("joint", 0.3, 0.2, 2, id="in both at once, on returns"),
    ],
)
def test_resumed_equals_never_stopped(
    phases: Literal["two", "joint"],
    mc_epochs: float,
    epochs: float,
    stopped_in: int,
    q_sft_config: QSFTConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = replace(q_sft_config, phases=phases, mc_epochs=mc_epochs, epochs=epochs)
    parts, last = (BEHAVIOR, LIKELIHOOD, TARGET), 8 if phases == "two" else 5
    assert_resumed_equals_never_stopped(train_q_sft, config, stopped_in, parts, last, monkeypatch)


def test_a_model_that_imitates_already_is_left_as_it_is(
    q_sft_config: QSFTConfig, small_model: Path
) -> None:
    run = train_q_sft(replace(q_sft_config, bc_epochs=0.0))
    start = load_file(small_model / "model.safetensors")
    assert same(start, weights(run, 4, BEHAVIOR))
    assert not same(start, weights(run, 4, LIKELIHOOD))


def test_the_paper_s_settings_train(q_sft_config: QSFTConfig) -> None:
    for action_set in ("vocabulary", "legal"):
        config = replace(q_sft_config, residual_mass="spread", action_set=action_set)
        train_q_sft(config, existing="overwrite" if action_set == "legal" else "refuse")
    acting = load_reweighted(Path(q_sft_config.output) / "checkpoints/step_8/model", slots=2)
    assert acting.acting == q_sft_config.acting


def test_steps_of_phases(q_sft_config: QSFTConfig) -> None:
    assert [stage[1:] for stage in plan_stages(q_sft_config, 80)] == [(0, 4), (4, 4)]
    assert [stage[1:] for stage in plan_stages(q_sft_config, 3)] == [(0, 1), (1, 1)]
    with_returns = replace(q_sft_config, mc_epochs=0.2)
    assert plan_stages(with_returns, 80) == [
        ("behavior", 0, 4),
        ("returns", 4, 2),
        ("likelihood", 6, 4),
    ]
    joint = replace(q_sft_config, phases="joint", epochs=1.0)
    assert [stage[1:] for stage in plan_stages(joint, 80)] == [(0, 10)]
    joint = replace(with_returns, phases="joint")
    assert plan_stages(joint, 80) == [("returns", 0, 2), ("likelihood", 2, 4)]


# The data


def loaded(config: QSFTConfig, task: Task, model: Path) -> OfflineData:
    return load_offline(config, task, load_policy(str(model), slots=1))


def test_the_map_is_given_or_declared_or_fitted(
    q_sft_config: QSFTConfig, crossing: Task, small_model: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_shard(data / "some.parquet", list(straight_on(crossing, range(4))))
    config = replace(q_sft_config, data=str(data))
    assert loaded(config, crossing, small_model).maps == StepMaps((RewardMap(0.0, 1.0),))
    write_reward_map(data, RewardMap(-1.0, 2.0))
    assert loaded(config, crossing, small_model).maps == StepMaps((RewardMap(-1.0, 2.0),))
    by_step = replace(config, return_normalization="step")
    assert len(loaded(by_step, crossing, small_model).maps.maps) == 4
    config = replace(config, return_min=-3.0, return_max=3.0)
    assert loaded(config, crossing, small_model).maps == StepMaps((RewardMap(-3.0, 3.0),))
    config = replace(config, return_min=-3.0, return_max=0.5)
    with pytest.raises(ConfigError, match=r"trajectory 0 \(tests.*Crossing, seed 0\).*-3 to 0.5"):
        loaded(config, crossing, small_model)


def test_the_dummy_is_never_said(
    q_sft_config: QSFTConfig, crossing: Task, small_model: Path
) -> None:
    data = loaded(q_sft_config, crossing, small_model)
    assert data.residual == load_policy(str(small_model), slots=1).encoder.tokenizer.pad_token_id
    assert not any(
        data.residual in answer for episode in data.episodes for answer in episode.completions()
    )
    assert (
        loaded(replace(q_sft_config, residual_mass="spread"), crossing, small_model).residual
        is None
    )


def test_what_was_cut_has_no_last_target(
    q_sft_config: QSFTConfig, crossing: Task, small_model: Path, tmp_path: Path
) -> None:
    walks = [*straight_on(crossing, range(4)), cut_after(next(straight_on(crossing, range(1))), 2)]
    write_shard(tmp_path / "cut.parquet", walks)
    config = replace(q_sft_config, data=str(tmp_path / "cut.parquet"))
    cut = loaded(config, crossing, small_model).episodes[-1]
    assert (cut.terminated, cut.known_actions) == (False, cut.actions - 1)
    assert cut.known_returns == 0
    train_q_sft(replace(config, batch_size=5, mc_epochs=1.0))


def test_legal_answers_alone_where_only_they_count(
    q_sft_config: QSFTConfig, crossing: Task, small_model: Path, tmp_path: Path
) -> None:
    (walk,) = straight_on(crossing, range(1))
    completion = replace(walk.steps[0].completion, text="I fly.")
    odd = replace(walk, steps=(replace(walk.steps[0], completion=completion), *walk.steps[1:]))
    write_shard(tmp_path / "odd.parquet", [walk, odd, *straight_on(crossing, range(1, 2))])
    config = replace(q_sft_config, data=str(tmp_path / "odd.parquet"), action_set="legal")
    with pytest.raises(ConfigError, match="action_set is 'legal', but the data hold a response"):
        loaded(config, crossing, small_model)
    loaded(replace(config, action_set="vocabulary"), crossing, small_model)


# The settings


def test_settings_come_back_equal(q_sft_config: QSFTConfig, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(dump_config(q_sft_config), encoding="utf-8")
    assert load_any_config(tmp_path / "config.yaml") == q_sft_config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"return_min": 0.0}, "both or neither"),
        ({"return_min": 1.0, "return_max": 1.0}, r"return_max is 1.0 — expected above"),
        (
            {"return_min": 0.0, "return_max": 1.0, "return_normalization": "step"},
            r"return_normalization is 'step' — expected data, where a range is declared",
        ),
        ({"gamma": 1.1}, "gamma is 1.1"),
        ({"polyak_tau": 0.0}, "polyak_tau is 0.0"),
        ({"epochs": 0.0}, "epochs is 0.0"),
        ({"prompt": PromptConfig(return_bins=4)}, r"prompt\.return_bins is 4 — expected 0"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        QSFTConfig(**changes)  # type: ignore[arg-type]


def test_a_score_of_an_example_agrees(small_model: Path) -> None:
    """The by-hand forward pass of these tests is the policy's own."""
    policy = load_policy(str(small_model), slots=1)
    ids = tuple(np.random.default_rng(0).integers(6, 60, size=9).tolist())
    prompt = Prompt((), ids[:5])
    scores = policy.score([Example(prompt, ids[5:])], temperature=1.0).logprobs_BT[0]
    by_hand = [all_logprobs(policy.module, policy, ids[:n])[ids[n]] for n in range(5, 9)]
    torch.testing.assert_close(scores, torch.stack(by_hand), atol=1e-4, rtol=1e-4)
