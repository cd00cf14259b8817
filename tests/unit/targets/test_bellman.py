"""The Bellman probability target, region by region; and values within an answer.

An answer of three tokens, of which the last is worth 0.6 and the others, by p/π, 0.3 and 0.2;
beside them there are actions worth 0.5, 0.1 and 0.4.
"""

import pytest
import torch

from forethought.targets.bellman import bellman_targets, utterance_values

OTHERS, OWN = [0.5, 0.1, 0.4], [0.3, 0.2, 0.6]
INSIDE, NOWHERE = [True, True, False], [False, False, False]


@pytest.mark.parametrize(
    ("own", "supported", "reward", "discount", "inside", "values"),
    [
        pytest.param(OWN, [1, 1, 1], 0.0, 1.0, NOWHERE, [0.5, 0.2, 0.6], id="the best action"),
        pytest.param(OWN, [1, 0, 0], 0.0, 1.0, NOWHERE, [0.5, 0.1, 0.4], id="not unsupported"),
        pytest.param(OWN, [1, 1, 1], 0.0, 1.0, INSIDE, [0.6, 0.6, 0.6], id="back to the beginning"),
        pytest.param(OWN, [1, 1, 1], 0.0, 0.5, INSIDE, [0.5, 0.3, 0.6], id="discounted"),
        pytest.param(OWN, [1, 1, 1], 0.1, 0.5, INSIDE, [0.5, 0.4, 0.6], id="with the map's share"),
        pytest.param(OWN, [1, 0, 1], 0.0, 1.0, INSIDE, [0.5, 0.1, 0.6], id="not over a gap"),
        pytest.param(
            [0.3, 0.2, 3.0], [1, 1, 1], 0.0, 1.0, INSIDE, [1.0, 1.0, 3.0], id="at most 1 goes back"
        ),
    ],
)
def test_values_of_states(
    own: list[float],
    supported: list[int],
    reward: float,
    discount: float,
    inside: list[bool],
    values: list[float],
) -> None:
    found = utterance_values(
        other_values_N=torch.tensor(OTHERS),
        own_values_N=torch.tensor(own),
        is_supported_N=torch.tensor(supported).bool(),
        rewards_N=torch.full((3,), reward),
        discounts_N=torch.full((3,), discount),
        is_inside_N=torch.tensor(inside),
    )
    assert found.tolist() == pytest.approx(values)


def test_values_refused() -> None:
    three, two = torch.zeros(3), torch.zeros(2)
    with pytest.raises(ValueError, match="one shape"):
        utterance_values(
            other_values_N=three,
            own_values_N=two,
            is_supported_N=three.bool(),
            rewards_N=three,
            discounts_N=three,
            is_inside_N=three.bool(),
        )


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
