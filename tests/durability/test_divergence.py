"""A gradient that is no number never reaches the weights."""

from collections.abc import Callable

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from forethought.configs.parts import OptimizerConfig
from forethought.errors import DivergenceError
from forethought.training.optim import Updater


def make_updater() -> tuple[nn.Linear, Updater]:
    module = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[3.0, -5.0]]))
    updater = Updater(
        module=module,
        accelerator=Accelerator(cpu=True),
        config=OptimizerConfig(learning_rate=0.01),
        total_steps=10,
    )
    return module, updater


@pytest.mark.parametrize(
    ("factor", "shown"),
    [
        pytest.param(float("nan"), "nan", id="not a number"),
        pytest.param(float("inf"), "inf", id="infinite"),
    ],
)
@pytest.mark.parametrize("position", [0, 1], ids=["first part", "second part"])
def test_a_gradient_that_is_no_number_is_refused(factor: float, shown: str, position: int) -> None:
    module, updater = make_updater()
    updater.step([lambda: module.weight.sum()])
    weight, moments = module.weight.detach().clone(), moments_of(updater)

    def part(index: int) -> Callable[[], Tensor]:
        return lambda: module.weight.sum() * (factor if index == position else 1.0)

    with pytest.raises(DivergenceError) as error:
        updater.step([part(0), part(1)])
    assert str(error.value) == (
        f"training diverged: the gradient's norm in optimizer step 2 is {shown}, expected a "
        "number — start another run with a lower optimizer.learning_rate than 0.01"
    )
    assert torch.equal(module.weight, weight)
    assert all(map(torch.equal, moments_of(updater), moments))
    assert updater.steps == 1


def moments_of(updater: Updater) -> list[Tensor]:
    """What Adam remembers."""
    (adam,) = updater.optimizers
    states = [adam.state[p] for p in updater.trained.values()]
    return [s[key].clone() for s in states for key in ("exp_avg", "exp_avg_sq", "step")]
