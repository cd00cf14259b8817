"""Which actions count, and what the ratio of two probabilities says of them."""

import pytest
import torch

from forethought.losses.q_sft import likelihood_ratios, support_mask

BEHAVIOR = torch.tensor([[0.6, 0.3, 0.09, 0.01]]).log()
LIKELIHOOD = torch.tensor([[0.3, 0.3, 0.009, 0.01]]).log()


@pytest.mark.parametrize(
    ("top_p", "min_probability", "kept"),
    [
        pytest.param(1.0, 0.0, [1, 1, 1, 1], id="everything"),
        pytest.param(1.0, 0.05, [1, 1, 1, 0], id="likely enough"),
        pytest.param(0.95, 0.0, [1, 1, 1, 0], id="nucleus: the action that crosses it is in"),
        pytest.param(0.85, 0.0, [1, 1, 0, 0], id="a smaller nucleus"),
        pytest.param(0.85, 0.4, [1, 0, 0, 0], id="both bounds hold"),
        pytest.param(0.01, 0.9, [1, 0, 0, 0], id="never empty"),
    ],
)
def test_support(top_p: float, min_probability: float, kept: list[int]) -> None:
    # The order in which actions stand must not matter.
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        support = support_mask(
            logprobs_NV=BEHAVIOR[:, order], top_p=top_p, min_probability=min_probability
        )
        assert support.int().tolist() == [[kept[i] for i in order]]


@pytest.mark.parametrize(
    ("top_p", "min_probability", "kept"),
    [
        pytest.param(1.0, 0.0, [0, 1, 1, 1], id="everything else"),
        pytest.param(1.0, 0.5, [0, 1, 0, 0], id="never empty"),
        pytest.param(0.35, 0.0, [0, 1, 1, 0], id="no part of the nucleus"),
    ],
)
def test_a_dummy_is_no_action(top_p: float, min_probability: float, kept: list[int]) -> None:
    support = support_mask(
        logprobs_NV=BEHAVIOR, top_p=top_p, min_probability=min_probability, residual=0
    )
    assert support.int().tolist() == [kept]


@pytest.mark.parametrize(
    ("kept", "floor", "ratios"),
    [
        pytest.param([1, 1, 1, 1], 1e-6, [0.5, 1.0, 0.1, 1.0], id="p / π"),
        pytest.param([1, 1, 0, 0], 1e-6, [0.5, 1.0, 0.0, 0.0], id="outside the support: 0"),
        pytest.param([1, 1, 1, 1], 0.1, [0.5, 1.0, 0.09, 0.1], id="floored: p / 0.1"),
    ],
)
def test_ratio(kept: list[int], floor: float, ratios: list[float]) -> None:
    found = likelihood_ratios(
        likelihood_logprobs_NV=LIKELIHOOD,
        behavior_logprobs_NV=BEHAVIOR,
        support_NV=torch.tensor([kept]).bool(),
        floor=floor,
    )
    assert found[0].tolist() == pytest.approx(ratios)


def test_what_was_ruled_out_stays_finite() -> None:
    behavior = torch.tensor([[0.0, -1e9]])
    support = support_mask(logprobs_NV=behavior, top_p=1.0, min_probability=0.0)
    found = likelihood_ratios(
        likelihood_logprobs_NV=behavior,
        behavior_logprobs_NV=behavior,
        support_NV=support,
        floor=1e-3,
    )
    assert found.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"top_p": 0.0}, "top_p: expected above 0", id="no mass"),
        pytest.param({"min_probability": 1.0}, "min_probability: expected 0 up to 1", id="all"),
        pytest.param({"logprobs_NV": BEHAVIOR[0]}, "N, V", id="no axis of states"),
        pytest.param({"logprobs_NV": BEHAVIOR.double()}, "float32", id="float64"),
    ],
)
def test_support_refused(changes: dict[str, object], message: str) -> None:
    arguments = {"logprobs_NV": BEHAVIOR, "top_p": 1.0, "min_probability": 0.0}
    with pytest.raises(ValueError, match=message):
        support_mask(**{**arguments, **changes})  # type: ignore[arg-type]


def test_ratio_refused() -> None:
    with pytest.raises(ValueError, match="floor: expected above 0"):
        likelihood_ratios(
            likelihood_logprobs_NV=LIKELIHOOD,
            behavior_logprobs_NV=BEHAVIOR,
            support_NV=torch.ones(1, 4, dtype=torch.bool),
            floor=0.0,
        )
