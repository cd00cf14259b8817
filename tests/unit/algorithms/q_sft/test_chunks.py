"""Q-SFT on a large vocabulary: in chunks, the numbers of all logits at once."""

from pathlib import Path

import pytest
import torch

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import QSFTContext, QSFTModels, load_offline
from forethought.algorithms.q_sft.targets import compute_targets
from forethought.algorithms.q_sft.train import value_loss
from forethought.generation.huggingface import load_policy
from forethought.offline.episodes import lay_out
from forethought.rollouts.task import Task
from forethought.value_guided.policy import Settings
from tests.unit.algorithms.offline_runs import OneProcess
from tests.unit.algorithms.q_sft.test_q_sft import (
    q_sft_config,  # noqa: F401  # pyright: ignore[reportUnusedImport]
    unlike,
)


def test_a_large_vocabulary_is_judged_and_learned_in_chunks(
    q_sft_config: QSFTConfig,  # noqa: F811
    crossing: Task,
    small_model: Path,
) -> None:
    """Targets, loss and gradient are those of all logits at once."""
    policy = load_policy(str(small_model), slots=1)
    data = load_offline(q_sft_config, crossing, policy)
    models = QSFTModels(policy, Settings(q_sft_config.acting, q_sft_config.support), is_joint=False)
    models.begin("likelihood")
    unlike(policy, models)
    learner = QSFTContext(models, data, q_sft_config, OneProcess())  # type: ignore[arg-type]
    episodes = [data.episodes[0], data.episodes[1]]
    (part,) = lay_out(episodes, policy.encoder, policy.device, 4096)
    known = sum(episode.actions for episode in episodes)
    assert models.likelihood is not None

    def learned(rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        likelihood = models.likelihood.module  # type: ignore[union-attr]
        for module in (policy.module, likelihood):
            module.largest_projection = rows * module.vocabulary
        likelihood.zero_grad()
        ((judged,), _) = compute_targets(episodes, [part], learner)
        loss = value_loss(judged, known, learner, torch.zeros(()))
        loss.backward()
        gradients = [p.grad.flatten() for p in likelihood.parameters() if p.grad is not None]
        return judged.targets_N, loss.detach(), torch.cat(gradients)

    targets_N, loss, gradient = learned(1000)
    assert len(targets_N) == known > 10
    chunked_N, chunked_loss, chunked_gradient = learned(3)
    torch.testing.assert_close(chunked_N, targets_N, rtol=1e-5, atol=1e-6)
    assert chunked_loss.item() == pytest.approx(loss.item(), abs=1e-6)
    assert (chunked_gradient - gradient).norm() <= 1e-5 * gradient.norm()
