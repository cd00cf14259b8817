"""The Bellman probability target, region by region."""

import pytest
import torch

from forethought.targets.q_sft import bellman_targets


@pytest.mark.parametrize(
    ("reward", "discount", "next_value", "target"),
    [
        pytest.param(0.3, 0.0, 0.8, 0.3, id="terminal: the reward alone"),
        pytest.param(0.3, 0.0, float("nan"), 0.3, id="terminal: nothing follows"),
        pytest.param(0.0, 1.0, 0.8, 0.8, id="inside an utterance: what follows"),
        pytest.param(0.1, 0.5, 0.8, 0.5, id="reward and discounted value"),
        pytest.param(0.5, 1.0, 0.8, 1.0, id="clipped above"),
        pytest.param(-0.5, 0.5, 0.8, 0.0, id="clipped below"),
    ],
)
def test_target(reward: float, discount: float, next_value: float, target: float) -> None:
    result = bellman_targets(
        rewards_N=torch.tensor([reward]),
        discounts_N=torch.tensor([discount]),
        next_values_N=torch.tensor([next_value]),
    )
    assert result.targets_N.tolist() == pytest.approx([target])


def test_clipped_shares() -> None:
    result = bellman_targets(
        rewards_N=torch.tensor([0.5, -0.5, 0.5, 0.2]),
        discounts_N=torch.tensor([1.0, 0.5, 1.0, 0.0]),
        next_values_N=torch.tensor([0.8, 0.8, 0.9, 0.0]),
    )
    assert result.clipped_high.item() == 0.5
    assert result.clipped_low.item() == 0.25


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"discounts_N": torch.tensor([1.5])}, "discounts_N: expected 0", id="γ > 1"),
        pytest.param({"next_values_N": torch.tensor([float("nan")])}, "finite", id="no value"),
        pytest.param({"rewards_N": torch.zeros(2)}, "one shape", id="a reward too many"),
        pytest.param({"rewards_N": torch.zeros(1).double()}, "float32", id="float64"),
        pytest.param({"next_values_N": torch.zeros(1, 1)}, r"\[N\]", id="too many axes"),
    ],
)
def test_refused(changes: dict[str, torch.Tensor], message: str) -> None:
    arguments = {
        "rewards_N": torch.zeros(1),
        "discounts_N": torch.ones(1),
        "next_values_N": torch.ones(1),
    }
    with pytest.raises(ValueError, match=message):
        bellman_targets(**{**arguments, **changes})
