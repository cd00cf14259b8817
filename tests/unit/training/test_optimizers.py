"""Who moves by which rule, how far, and what is stored of it."""

from math import sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from forethought.configs.parts import OptimizerConfig
from forethought.runs.metrics import MetricsPosition
from forethought.training.optim import Updater, is_for_muon
from forethought.training.state import (
    Progress,
    load_optimizer,
    optimizer_tensors,
    random_states,
    save_state,
)

RATE = 0.01
ROTATION = torch.tensor([[0.6, -0.8], [0.8, 0.6]])


class Model(nn.Module):
    """A table, a matrix inside, its bias, and a critic."""

    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(2, 2)
        self.layer = nn.Linear(2, 2)
        self.value_head = nn.Linear(2, 1, bias=False)
        for parameter in self.parameters():
            nn.init.zeros_(parameter)


def make_updater(model: Model) -> Updater:
    return Updater(
        module=model,
        accelerator=Accelerator(cpu=True),
        config=OptimizerConfig(
            algorithm="muon", learning_rate=RATE, schedule="constant", max_gradient_norm=1e6
        ),
        total_steps=10,
        critic_learning_rate=0.03,
    )


def slope(model: Model, scale: float) -> Tensor:
    """A loss whose gradient is a rotation in the matrix, and 1 everywhere else."""
    others = [p for name, p in model.named_parameters() if name != "layer.weight"]
    total = (model.layer.weight * ROTATION).sum() * scale
    return total + torch.stack([parameter.sum() for parameter in others]).sum()


def orthogonalized(singular_value: float) -> float:
    """Five rounds of Newton-Schulz, for one singular value (Jordan 2024)."""
    s = singular_value
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return s


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_one_step(scale: float) -> None:
    """Muon: 0.2 √2 of the rate along the rotation, however steep it is, as both its singular
    values are 1/√2 of its norm. Adam's first step is its rate: half of Muon's, or the critic's."""
    model = Model()
    updater = make_updater(model)
    updater.step([lambda: slope(model, scale)])
    length = RATE * 0.2 * sqrt(2) * orthogonalized(1 / sqrt(2))
    torch.testing.assert_close(
        model.layer.weight.data, -length * ROTATION, rtol=0.03, atol=1e-5
    )  # Muon orthogonalizes in bf16
    for parameter, rate in (
        (model.embed_tokens.weight, RATE / 2),
        (model.layer.bias, RATE / 2),
        (model.value_head.weight, 0.03),
    ):
        torch.testing.assert_close(
            parameter.data, torch.full_like(parameter, -rate), rtol=1e-4, atol=0
        )


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("model.layers.0.mlp.up_proj.weight", (4, 2), True),
        ("model.layers.0.mlp.up_proj.bias", (4,), False),
        ("model.embed_tokens.weight", (9, 2), False),
        ("vision_tower.embeddings.position_embedding.weight", (9, 2), False),
        ("vision_tower.embeddings.patch_embedding.weight", (2, 3, 8, 8), False),
        ("lm_head.weight", (9, 2), False),
        ("value_head.0.weight", (4, 2), False),
    ],
)
def test_matrices_inside_layers(name: str, shape: tuple[int, ...], expected: bool) -> None:
    assert is_for_muon(name, torch.zeros(shape)) is expected


def test_what_is_remembered_comes_back_to_where_its_parameter_is(tmp_path: Path) -> None:
    """The count of steps, too: fused Adam asks for that. The meta device stands for a GPU."""
    model = Model()
    updater, progress = make_updater(model), Progress(1, 1, MetricsPosition())
    updater.step([lambda: slope(model, 1.0)])
    stand_in: Any = SimpleNamespace(module=model, save=Path.mkdir)
    save_state(
        tmp_path,
        policy=stand_in,
        optimizer=optimizer_tensors(updater),
        progress=progress,
        randomness=[random_states()],
    )
    there = {name: nn.Parameter(p.to("meta")) for name, p in updater.trained.items()}
    muon = torch.optim.Muon([there["layer.weight"]])
    adam = torch.optim.Adam([p for name, p in there.items() if name != "layer.weight"])
    elsewhere: Any = SimpleNamespace(
        trained=there, optimizers=[muon, adam], partitions=None, steps=0
    )
    load_optimizer(tmp_path, elsewhere, progress)
    states = [*muon.state.values(), *adam.state.values()]
    assert len(states) == len(there)
    assert {tensor.device.type for state in states for tensor in state.values()} == {"meta"}
