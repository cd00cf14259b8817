"""Q-Transformer, in a table of values, finds what nobody in the data did from its beginning to its
end, and a broken one does not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from forethought.losses import q_transformer

BINS = 4
PASS, PAY = (1, 2), (3, 0)
"""Of two states the first leads to the second by this action, which pays by that one."""


def greedy_actions(**changes: Callable[[torch.Tensor], torch.Tensor]) -> list[tuple[int, int]]:
    """What the best bin of each dimension is in both states, after learning from every action once.

    The episodes of the first state were cut behind it: that it leads to a reward is known by the
    value of the second alone. Values are in a table: one row for the first dimension of each
    state, and one for the second after each bin of the first.

    Args:
        changes: of the arguments of targets and loss, by name.
    """
    whole = [(i, j) for i in range(BINS) for j in range(BINS)]
    rows: list[list[int]] = []  # row, action, next row, is the end, reward, return
    for state, good in enumerate((PASS, PAY)):
        begin, other = state * (BINS + 1), BINS + 1
        for i, j in whole:
            paid = int(state == 1 and (i, j) == good)
            is_end = int(state == 1 or (i, j) != good)
            rows.append([begin, i, begin + 1 + i, 0, 0, paid])
            rows.append([begin + 1 + i, j, other, is_end, paid, paid])
    at, actions, following, ends, rewards, returns = torch.tensor(rows).T
    logits = torch.zeros(2 * (BINS + 1), BINS, requires_grad=True)
    slow = logits.detach().clone()
    optimizer = torch.optim.Adam([logits], lr=0.1)

    def changed(**arguments: Any) -> dict[str, Any]:
        return {n: changes[n](one) if n in changes else one for n, one in arguments.items()}

    for _ in range(300):
        targets_N = q_transformer.q_transformer_targets(
            **changed(
                rewards_N=rewards.float(),
                discounts_N=0.98 * (1 - ends.float()),
                next_best_N=q_transformer.q_values(slow)[following].amax(1),
                returns_N=returns.float(),
            )
        )
        result = q_transformer.q_transformer_loss(
            **changed(
                q_NV=q_transformer.q_values(logits)[at],
                actions_N=actions,
                targets_N=targets_N,
                conservative_weight=1.0,
            )
        )
        optimizer.zero_grad()
        result.loss.backward()
        optimizer.step()
        slow.lerp_(logits.detach(), 0.1)
    found: list[tuple[int, int]] = []
    for begin in (0, BINS + 1):
        first = int(logits[begin].argmax())
        found.append((first, int(logits[begin + 1 + first].argmax())))
    return found


def test_each_dimension_s_best_bin() -> None:
    assert greedy_actions() == [PASS, PAY]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"next_best_N": torch.zeros_like}, id="no next state"),
        pytest.param({"targets_N": lambda targets_N: 1 - targets_N}, id="the wrong sign"),
        pytest.param({"discounts_N": torch.zeros_like}, id="every token is an end"),
    ],
)
def test_a_broken_one_does_not_find_it(changes: dict[str, Any]) -> None:
    assert greedy_actions(**changes)[0] != PASS
