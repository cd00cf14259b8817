"""Each region of the clipped value loss by hand (one step, old value 0, c = 0.5)."""

import math

import pytest
import torch

from forethought.losses.ppo import clipped_value_loss, explained_variance


@pytest.mark.parametrize(
    ("value", "return_", "clip", "loss", "gradient"),
    [
        # loss = 0.5 max((v - R)^2, (v_clip - R)^2); slope v - R where the first is larger, else 0.
        pytest.param(0.3, 2.0, 0.5, 0.5 * 1.7**2, -1.7, id="inside: squared error"),
        pytest.param(-0.3, 2.0, 0.5, 0.5 * 2.3**2, -2.3, id="inside, below: squared error"),
        pytest.param(1.0, 2.0, 0.5, 0.5 * 1.5**2, 0.0, id="above, towards the return: flat"),
        pytest.param(1.0, -2.0, 0.5, 0.5 * 3.0**2, 3.0, id="above, away: pulled back"),
        pytest.param(-1.0, -2.0, 0.5, 0.5 * 1.5**2, 0.0, id="below, towards the return: flat"),
        pytest.param(-1.0, 2.0, 0.5, 0.5 * 3.0**2, -3.0, id="below, away: pulled back"),
        pytest.param(1.2, 1.0, 0.5, 0.5 * 0.5**2, 0.0, id="above, a little past the return: flat"),
        pytest.param(3.0, 1.0, 0.5, 0.5 * 2.0**2, 2.0, id="above, far past it: pulled back"),
        pytest.param(1.0, 2.0, None, 0.5 * 1.0**2, -1.0, id="no clip: squared error however far"),
        pytest.param(-1.0, 2.0, None, 0.5 * 3.0**2, -3.0, id="no clip, away: squared error"),
    ],
)
def test_region(
    value: float, return_: float, clip: float | None, loss: float, gradient: float
) -> None:
    values_B = torch.tensor([value], requires_grad=True)
    result = clipped_value_loss(
        values_B=values_B,
        old_values_B=torch.zeros(1),
        returns_B=torch.tensor([return_]),
        clip=clip,
        mask_B=None,
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(loss)
    assert values_B.grad is not None
    assert values_B.grad.item() == pytest.approx(gradient)


@pytest.mark.parametrize(
    ("value", "return_", "loss", "gradient"),
    [
        pytest.param(10.3, 8.0, 0.5 * 2.3**2, 2.3, id="inside: squared error"),
        pytest.param(11.0, 12.0, 0.5 * 1.5**2, 0.0, id="above: clipped to 10.5, flat"),
    ],
)
def test_range_lies_around_the_old_value(
    value: float, return_: float, loss: float, gradient: float
) -> None:
    """Old value 10, c = 0.5: the range is 9.5 to 10.5."""
    values_B = torch.tensor([value], requires_grad=True)
    result = clipped_value_loss(
        values_B=values_B,
        old_values_B=torch.tensor([10.0]),
        returns_B=torch.tensor([return_]),
        clip=0.5,
        mask_B=None,
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(loss)
    assert values_B.grad is not None
    assert values_B.grad.item() == pytest.approx(gradient)


@pytest.mark.parametrize("junk", [7.0, math.inf, math.nan])
def test_masked_step_has_no_part(junk: float) -> None:
    """Beside v = 0.1 and 0.3, both R = 1: loss 0.5 (0.9² + 0.7²) / 2, gradient (v - R) / 2."""
    values_B = torch.tensor([0.1, junk, 0.3], requires_grad=True)
    result = clipped_value_loss(
        values_B=values_B,
        old_values_B=torch.tensor([0.0, junk, 0.0]),
        returns_B=torch.tensor([1.0, junk, 1.0]),
        clip=0.5,
        mask_B=torch.tensor([True, False, True]),
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(0.5 * (0.81 + 0.49) / 2)
    assert values_B.grad is not None
    assert values_B.grad.tolist() == pytest.approx([-0.45, 0.0, -0.35])
    assert result.clip_fraction.item() == 0.0
    assert result.explained_variance.item() == 0.0


@pytest.mark.parametrize(
    ("clip", "fraction"),
    [
        pytest.param(0.5, 0.75, id="three of four moved by more than 0.5"),
        pytest.param(1.0, 0.25, id="one of four moved by more than 1, two by exactly 1"),
        pytest.param(1.5, 0.25, id="one of four moved by more than 1.5"),
        pytest.param(None, 0.0, id="no clip: none is clipped"),
    ],
)
def test_statistics(clip: float | None, fraction: float) -> None:
    """Values 0, 1, -1, 2 against returns 0, 2, -2, 4: residuals are half the returns.

    So their variance is a quarter, and 3/4 is explained.
    """
    result = clipped_value_loss(
        values_B=torch.tensor([0.0, 1.0, -1.0, 2.0], requires_grad=True),
        old_values_B=torch.zeros(4),
        returns_B=torch.tensor([0.0, 2.0, -2.0, 4.0]),
        clip=clip,
        mask_B=None,
    )
    assert result.clip_fraction.item() == fraction
    assert result.explained_variance.item() == pytest.approx(0.75)
    assert not any(statistic.requires_grad for statistic in result[1:])


@pytest.mark.parametrize(
    ("values", "returns", "explained"),
    [
        pytest.param([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1.0, id="perfect"),
        pytest.param([5.0, 6.0, 7.0], [1.0, 2.0, 3.0], 1.0, id="perfect but for a constant"),
        pytest.param([2.0, 2.0, 2.0], [1.0, 2.0, 3.0], 0.0, id="a constant explains nothing"),
        pytest.param([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], -3.0, id="upside down misleads"),
        pytest.param([1.0, 2.0, 3.0], [0.1, 0.1, 0.1], 0.0, id="nothing to explain"),
        pytest.param([4.0], [1.0], 0.0, id="one step varies from nothing"),
    ],
)
def test_explained_variance(values: list[float], returns: list[float], explained: float) -> None:
    result = explained_variance(
        values_B=torch.tensor(values, requires_grad=True),
        returns_B=torch.tensor(returns),
        mask_B=None,
    )
    assert result.shape == ()
    assert result.item() == pytest.approx(explained, abs=1e-6)
    assert not result.requires_grad


@pytest.mark.parametrize(
    ("override", "message"),
    [
        pytest.param({"values_B": torch.zeros(3, 1)}, r"values_B: expected \[B\]", id="a column"),
        pytest.param({"returns_B": torch.zeros(1)}, r"returns_B \[1\]", id="return broadcasts"),
        pytest.param({"old_values_B": torch.zeros(2)}, r"old_values_B \[2\]", id="old length"),
        pytest.param(
            {"old_values_B": torch.zeros(3).double()}, "old_values_B.*got torch.float64", id="fp64"
        ),
        pytest.param(
            {"values_B": torch.zeros(3).bfloat16()},
            "values_B.*got torch.bfloat16",
            id="bf16 values",
        ),
        pytest.param(
            {"returns_B": torch.zeros(3).double()}, "got torch.float64", id="fp64 returns"
        ),
        pytest.param(
            {"returns_B": torch.zeros(3, requires_grad=True)},
            "returns_B: expected data without gradient",
            id="gradient through the return",
        ),
        pytest.param(
            {"old_values_B": torch.zeros(3, requires_grad=True)},
            "old_values_B: expected data without gradient",
            id="gradient on the old side",
        ),
        pytest.param({"clip": 0.0}, "clip: expected more than 0, or None, got 0.0", id="clip 0"),
        pytest.param({"mask_B": torch.ones(3)}, "got torch.float32", id="mask of floats"),
        pytest.param({"mask_B": torch.zeros(3).bool()}, "got none", id="nothing counts"),
    ],
)
def test_refused(override: dict[str, object], message: str) -> None:
    good = {
        "values_B": torch.zeros(3, requires_grad=True),
        "old_values_B": torch.zeros(3),
        "returns_B": torch.zeros(3),
        "clip": 0.5,
        "mask_B": None,
    }
    with pytest.raises(ValueError, match=message):
        clipped_value_loss(**good | override)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        pytest.param({"values_B": torch.zeros(3, 1)}, r"expected \[B\]", id="a column"),
        pytest.param({"returns_B": torch.zeros(1)}, r"returns_B \[1\]", id="return broadcasts"),
        pytest.param({"returns_B": torch.zeros(3).double()}, "got torch.float64", id="fp64"),
        pytest.param({"mask_B": torch.zeros(3).bool()}, "got none", id="nothing counts"),
    ],
)
def test_explained_variance_refuses(override: dict[str, torch.Tensor], message: str) -> None:
    good = {"values_B": torch.zeros(3), "returns_B": torch.zeros(3), "mask_B": None}
    with pytest.raises(ValueError, match=message):
        explained_variance(**good | override)  # type: ignore[arg-type]
