"""GiGPO by hand: with and without states that episodes share."""

from collections.abc import Sequence
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from forethought.targets.episode_advantages import (
    group_in_group_advantages,
    group_normalized_advantages,
)

# Two episodes, γ = 0.5:
#
#   episode 0    rewards 0  2    return 2    to go 1  2      A^E = +1
#   episode 1    rewards 0  0    return 0    to go 0  0      A^E = -1
#
# The mean of the two returns is 1, their deviations ±1: std 1, so A^E = ±1.
REWARDS = [[0.0, 2.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("rewards", "state_keys", "step_weight", "advantages"),
    [
        # each step is alone: A^S = 0
        pytest.param(REWARDS, ["ab", "cd"], 1.0, [[1, 1], [-1, -1]], id="no state is shared"),
        # the first steps share a: G 1 and 0, mean 1/2, std 1/2, A^S = ±1; the others alone
        pytest.param(REWARDS, ["ab", "ac"], 1.0, [[2, 1], [-2, -1]], id="the start is shared"),
        pytest.param(REWARDS, ["ab", "ac"], 0.5, [[1.5, 1], [-1.5, -1]], id="half the weight"),
        pytest.param(REWARDS, ["ab", "ac"], 0.0, [[1, 1], [-1, -1]], id="weight 0: grpo"),
        # as above, and the second steps share b: G 2 and 0, A^S = ±1
        pytest.param(REWARDS, ["ab", "ab"], 1.0, [[2, 2], [-2, -2]], id="both are shared"),
        # the second of episode 0 (G = 2) with the first of episode 1 (G = 0): ±1
        pytest.param(REWARDS, ["ab", "bc"], 1.0, [[1, 2], [-2, -1]], id="at different times"),
        # episode 0 stays in a: G 1, 2, and 0 of episode 1: mean 1, std √(2/3)
        pytest.param(
            REWARDS,
            ["aa", "ac"],
            1.0,
            [[1, 1 + sqrt(3 / 2)], [-1 - sqrt(3 / 2), -1]],
            id="a state that is visited twice",
        ),
        # returns 2 and 2, so A^E = 0; to go 1, 2 and 2: a holds 1 and 2, mean 3/2, std 1/2
        pytest.param(
            [[0.0, 2.0], [2.0]], ["ab", "a"], 1.0, [[-1, 0], [1]], id="the slower one lost time"
        ),
        # everything alike: nothing to prefer
        pytest.param([[0.1], [0.1], [0.1]], ["a", "a", "a"], 1.0, [[0], [0], [0]], id="all equal"),
    ],
)
def test_by_hand(
    rewards: list[list[float]],
    state_keys: list[str],
    step_weight: float,
    advantages: list[list[float]],
) -> None:
    result = group_in_group_advantages(
        rewards=[np.array(numbers) for numbers in rewards],
        state_keys=state_keys,
        gamma=0.5,
        step_weight=step_weight,
    )
    assert all(advantages_T.dtype == np.float64 for advantages_T in result)
    assert [part.tolist() for part in result] == [pytest.approx(part) for part in advantages]


EPISODES = st.lists(
    st.lists(st.tuples(st.floats(-10, 10), st.sampled_from("abc")), min_size=1, max_size=4),
    min_size=2,
    max_size=5,
)


@settings(deadline=None)  # a busy machine is not a failure
@given(episodes=EPISODES, gamma=st.floats(0, 1), step_weight=st.floats(0, 2))
def test_what_the_steps_add_has_mean_0_in_every_state(
    episodes: list[list[tuple[float, str]]], gamma: float, step_weight: float
) -> None:
    rewards = [np.array([reward for reward, _ in episode]) for episode in episodes]
    result = group_in_group_advantages(
        rewards=rewards,
        state_keys=[[key for _, key in episode] for episode in episodes],
        gamma=gamma,
        step_weight=step_weight,
    )
    by_episode = group_normalized_advantages(np.array([r.sum() for r in rewards]))
    added: dict[str, list[float]] = {}
    for episode, advantages_T, own in zip(episodes, result, by_episode, strict=True):
        assert len(advantages_T) == len(episode)
        for (_, key), advantage in zip(episode, advantages_T, strict=True):
            added.setdefault(key, []).append(float(advantage - own))
    for numbers in added.values():
        assert np.mean(numbers) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("rewards", "state_keys", "gamma", "step_weight", "message"),
    [
        pytest.param([np.ones(1)], ["a"], 0.9, 1.0, "at least 2 episodes, got 1", id="alone"),
        pytest.param([np.ones(2)] * 2, ["ab", "a"], 0.9, 1.0, r"\[2, 2\], got \[2, 1\]", id="key"),
        pytest.param([np.ones(2)] * 2, ["ab"], 0.9, 1.0, r"\[2, 2\], got \[2\]", id="keys of one"),
        pytest.param([np.ones(0)] * 2, ["", ""], 0.9, 1.0, r"got shape \[0\]", id="no steps"),
        pytest.param([np.ones(1)] * 2, ["a", "a"], 1.1, 1.0, "gamma", id="gamma above 1"),
        pytest.param([np.ones(1)] * 2, ["a", "a"], 0.9, -0.1, "got -0.1", id="weight below 0"),
        pytest.param([np.ones(1)] * 2, ["a", "a"], 0.9, inf, "got inf", id="weight without end"),
    ],
)
def test_refused(
    rewards: list[NDArray[np.float64]],
    state_keys: Sequence[str],
    gamma: float,
    step_weight: float,
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        group_in_group_advantages(
            rewards=rewards, state_keys=state_keys, gamma=gamma, step_weight=step_weight
        )
