"""What states are worth: the best action or the acting policy's mean, and back through answers.

One state: behavior 0.5, 0.3, 0.2, and p/π = 0.4, 0.9, 0.6. Then an answer of three tokens, of
which the last is worth 0.6 and the others, by p/π, 0.3 and 0.2; beside them there are actions
worth 0.5, 0.1 and 0.4.
"""

from math import exp, inf, log

import pytest
import torch

from forethought.targets.q_sft import LocalValues, local_values, values_along

BEHAVIOR, RATIOS = [0.5, 0.3, 0.2], [0.4, 0.9, 0.6]
LIKELIHOOD = [p * q for p, q in zip(BEHAVIOR, RATIOS, strict=True)]


def look(action: int, kept: list[int], beta: float | None, floor: float = 1e-3) -> LocalValues:
    return local_values(
        likelihood_logprobs_NV=torch.tensor([LIKELIHOOD]).log(),
        behavior_logprobs_NV=torch.tensor([BEHAVIOR]).log(),
        support_NV=torch.tensor([kept]).bool(),
        actions_N=torch.tensor([action]),
        floor=floor,
        beta=beta,
    )


def value_of(local: LocalValues, beta: float | None) -> float:
    one = torch.ones(1)
    along = values_along(
        local, rewards_N=one, discounts_N=one, is_inside_N=torch.zeros(1).bool(), beta=beta
    )
    return along.item()


SOFT = [p * exp(2 * q) for p, q in zip(BEHAVIOR, RATIOS, strict=True)]


@pytest.mark.parametrize(
    ("kept", "beta", "value"),
    [
        pytest.param([1, 1, 1], None, 0.9, id="the best action"),
        pytest.param([1, 0, 1], None, 0.6, id="the best supported one"),
        pytest.param([1, 1, 1], 0.0, sum(LIKELIHOOD), id="beta 0: what the data's policy gets"),
        pytest.param(
            [1, 1, 1],
            2.0,
            sum(w * q for w, q in zip(SOFT, RATIOS, strict=True)) / sum(SOFT),
            id="beta 2: what the acting policy gets",
        ),
        pytest.param([1, 0, 1], 0.0, (0.2 + 0.12) / 0.7, id="over the support alone"),
        pytest.param([1, 0, 0], 2.0, 0.4, id="one action"),
    ],
)
@pytest.mark.parametrize("action", [0, 1, 2])
def test_a_state(kept: list[int], beta: float | None, value: float, action: int) -> None:
    """Whichever action the data took there, outside the support, too."""
    assert value_of(look(action, kept, beta), beta) == pytest.approx(value, rel=1e-5)


def test_the_parts() -> None:
    local = look(1, [1, 1, 0], 2.0)
    assert local.own_N.item() == pytest.approx(0.9)
    assert local.own_logprobs_N.item() == pytest.approx(log(0.3))
    assert local.others_N.item() == pytest.approx(0.4)
    assert local.others_logweights_N.item() == pytest.approx(log(0.5) + 0.8)
    assert look(2, [1, 1, 0], None).own_logprobs_N.item() == -inf
    assert look(0, [1, 0, 0], 2.0).others_logweights_N.item() == -inf


def test_floored() -> None:
    assert value_of(look(0, [1, 1, 1], None, floor=0.4), None) == pytest.approx(0.27 / 0.4)


OWN, OTHERS = [0.3, 0.2, 0.6], [0.5, 0.1, 0.4]
INSIDE, NOWHERE = [True, True, False], [False, False, False]


def along(
    own: list[float],
    supported: list[int],
    reward: float,
    discount: float,
    inside: list[bool],
    beta: float | None,
) -> list[float]:
    """Each own action as likely as all others together."""
    own_logprobs = [log(0.5) if kept else -inf for kept in supported]
    others = torch.tensor(OTHERS)
    weights = log(0.5) + (beta or 0.0) * others
    return values_along(
        LocalValues(torch.tensor(own), torch.tensor(own_logprobs), others, weights),
        rewards_N=torch.full((3,), reward),
        discounts_N=torch.full((3,), discount),
        is_inside_N=torch.tensor(inside),
        beta=beta,
    ).tolist()


@pytest.mark.parametrize(
    ("own", "supported", "reward", "discount", "inside", "values"),
    [
        pytest.param(OWN, [1, 1, 1], 0.0, 1.0, NOWHERE, [0.5, 0.2, 0.6], id="each by itself"),
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
def test_back_through_an_answer(
    own: list[float],
    supported: list[int],
    reward: float,
    discount: float,
    inside: list[bool],
    values: list[float],
) -> None:
    assert along(own, supported, reward, discount, inside, None) == pytest.approx(values)


def test_back_through_an_answer_by_the_mean() -> None:
    """β = 0, and halves: (0.6 + 0.4) / 2, (0.5 + 0.1) / 2, (0.3 + 0.5) / 2."""
    assert along(OWN, [1, 1, 1], 0.0, 1.0, INSIDE, 0.0) == pytest.approx([0.4, 0.3, 0.5])
    sharp = along(OWN, [1, 1, 1], 0.0, 1.0, INSIDE, 500.0)
    assert sharp == pytest.approx(along(OWN, [1, 1, 1], 0.0, 1.0, INSIDE, None), abs=1e-3)


def test_refused() -> None:
    three = torch.zeros(3)
    local = LocalValues(three, three, three, three)
    numbers = {"rewards_N": three, "discounts_N": three, "is_inside_N": three.bool()}
    with pytest.raises(ValueError, match="one shape"):
        values_along(local, **{**numbers, "rewards_N": torch.zeros(2)}, beta=None)
    with pytest.raises(ValueError, match="the last token of an episode"):
        values_along(local, **{**numbers, "is_inside_N": ~three.bool()}, beta=None)
    with pytest.raises(ValueError, match="without gradient"):
        local_values(
            likelihood_logprobs_NV=torch.zeros(1, 2, requires_grad=True),
            behavior_logprobs_NV=torch.zeros(1, 2),
            support_NV=torch.ones(1, 2).bool(),
            actions_N=torch.zeros(1, dtype=torch.int64),
            floor=0.1,
            beta=None,
        )
