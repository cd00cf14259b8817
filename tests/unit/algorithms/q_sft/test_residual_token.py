"""The residual's share before anything is learned: all else is π_φ, scaled."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import QSFTContext, QSFTModels, load_offline
from forethought.algorithms.q_sft.targets import init_residual_token, least_squares
from forethought.algorithms.q_sft.train import begin
from forethought.generation.huggingface import load_policy
from forethought.offline.episodes import lay_out
from forethought.rollouts.task import Task
from forethought.value_guided.models import twin_of
from forethought.value_guided.policy import Settings
from tests.unit.algorithms.offline_runs import OneProcess


@pytest.fixture
def learner(offline: dict[str, Any], crossing: Task, small_model: Path) -> QSFTContext:
    config = QSFTConfig(**offline)
    policy = load_policy(str(small_model), slots=1)
    models = QSFTModels(policy, Settings(config.acting, config.support), is_joint=False)
    data = load_offline(config, crossing, policy)
    return QSFTContext(models, data, config, OneProcess())  # type: ignore[arg-type]


def test_least_squares_by_hand() -> None:
    """Two inputs of two components: XᵀX is diag(1, 4), the ridge 2.5e-4, Xᵀy (3, 8)."""
    row_H = least_squares(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([3.0, 4.0]))
    assert row_H.tolist() == pytest.approx([3 / 1.00025, 8 / 4.00025])


def test_fewer_inputs_than_components() -> None:
    row_H = least_squares(torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([2.0]))
    assert row_H.tolist() == pytest.approx([1.0, 1.0, 0.0], abs=1e-4)


def test_p_is_the_behavior_scaled_by_the_mean_return(learner: QSFTContext) -> None:
    """Half of the walks reach the goal, γ is 1: b is the share of tokens on ways to it."""
    models, data, residual = learner.models, learner.data, learner.data.residual
    assert residual is not None
    before = models.behavior.module.state_dict()
    kept = {name: weights.clone() for name, weights in before.items()}
    begin("returns", learner)
    assert models.likelihood is not None
    episodes = data.episodes[:40]
    parts = lay_out(episodes, models.behavior.encoder, models.behavior.device, 4096)
    at = [(part.tokens, part.is_action_BT) for part in parts]
    with torch.no_grad():
        own_NV = torch.cat([models.behavior.module.action_logprobs(*one) for one in at])
        new_NV = torch.cat([models.likelihood.module.action_logprobs(*one) for one in at])
    ended_well = sum(episode.actions for episode in data.episodes if sum(episode.rewards) == 1)
    share = ended_well / sum(episode.actions for episode in data.episodes)
    left_N = new_NV[:, residual].exp()
    assert float(left_N.mean()) == pytest.approx(1 - share, abs=0.02)
    assert float(left_N.std()) < 0.05
    others = own_NV[0] > -100  # Without those that are never said.
    others[residual] = False
    scaled_NV = (new_NV - own_NV)[:, others]
    torch.testing.assert_close(scaled_NV, scaled_NV[:, :1].expand_as(scaled_NV), atol=1e-4, rtol=0)
    assert all(torch.equal(kept[name], now) for name, now in before.items())
    assert models.target is not None
    mine, slow = models.likelihood.module.state_dict(), models.target.module.state_dict()
    assert all(torch.equal(mine[name], slow[name]) for name in mine)


def projections(learner: QSFTContext) -> tuple[torch.Tensor, torch.Tensor]:
    """π_φ's output projection, and that of a p_θ that begins as its copy."""
    learner.models.likelihood = twin_of(learner.models.behavior)
    modules = (learner.models.behavior.module, learner.models.likelihood.module)
    own, new = (module.model.get_output_embeddings() for module in modules)
    assert own is not None
    assert new is not None
    return own.weight, new.weight


def test_a_row_that_is_shared_stays(learner: QSFTContext) -> None:
    """With LoRA the projection is π_φ's, too."""
    learner.models.behavior.module.requires_grad_(requires_grad=False)
    own, new = projections(learner)
    before = own.clone()
    assert learner.data.residual is not None
    init_residual_token(learner, learner.data.residual)
    assert new is own
    assert torch.equal(own, before)


def test_nothing_is_raised_where_no_return_is_known(learner: QSFTContext) -> None:
    cut = [replace(episode, terminated=False) for episode in learner.data.episodes]
    learner = learner._replace(data=learner.data._replace(episodes=cut))
    own, new = projections(learner)
    assert learner.data.residual is not None
    init_residual_token(learner, learner.data.residual)
    assert torch.equal(own, new)
