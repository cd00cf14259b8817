"""Rewards become parts of a probability, and come back.

The three steps of `CUT` have rewards 1, 0, 2. With γ = 0.9 and the end
at step 2 the returns-to-go are 1 + 0.81 · 2 = 2.62, 1.8 and 2; cut there, with 6 to follow,
2 + 0.9 · 6 = 7.4, 6.66 and 6.994.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forethought.errors import ConfigError, StorageError
from forethought.targets.reward_map import (
    FILE_NAME,
    RewardMap,
    StepMaps,
    fit_reward_map,
    fit_step_maps,
    read_reward_map,
    require_in_range,
    returns_to_go,
    write_reward_map,
)
from forethought.types import Earned, EnvironmentFailure
from tests.unit.targets.builders import CUT, ending

ENDED = ending(terminated=True, truncated=False, bootstrap_value=None)
WORDLE = RewardMap(lowest=-6.0, highest=0.0)


@pytest.mark.parametrize(
    ("reward", "discount", "mapped"),
    [
        pytest.param(-1.0, 0.0, 5 / 6, id="the end: the whole offset"),
        pytest.param(-1.0, 1.0, -1 / 6, id="undiscounted: no offset"),
        pytest.param(-1.0, 0.9, -0.4 / 6, id="discounted: a part of it"),
    ],
)
def test_a_reward_and_back(reward: float, discount: float, mapped: float) -> None:
    assert WORDLE.reward(reward, discount=discount) == pytest.approx(mapped)
    assert WORDLE.environment_reward(mapped, discount=discount) == pytest.approx(reward)


@pytest.mark.parametrize("gamma", [1.0, 0.9, 0.0])
def test_every_return_is_mapped_by_the_same_line(gamma: float) -> None:
    rewards_T = np.array([-1.0, -1.0, 0.5, -2.0])
    discounts_T = [gamma, gamma, gamma, 0.0]
    value, mapped = 0.0, 0.0
    for reward, discount in zip(rewards_T[::-1], discounts_T[::-1], strict=True):
        value = reward + discount * value
        mapped = WORDLE.reward(reward, discount=discount) + discount * mapped
        assert mapped == pytest.approx(WORDLE.to_unit(value))
        assert WORDLE.from_unit(mapped) == pytest.approx(value)


def test_fitted_to_the_lowest_and_highest_return_to_go() -> None:
    assert returns_to_go(ENDED.earned, gamma=0.9).tolist() == pytest.approx([2.62, 1.8, 2.0])
    crashed = replace(CUT, failure=EnvironmentFailure.CRASH)
    fitted = fit_reward_map([one.earned for one in (ENDED, crashed, CUT)], gamma=0.9)
    assert (fitted.lowest, fitted.highest) == pytest.approx((1.8, 7.4))


def game(*rewards: float, first_step: int = 0) -> Earned:
    return Earned(first_step, rewards, terminated=True, bootstrap_value=None, failure=None)


def ranges(maps: StepMaps) -> list[tuple[float, float]]:
    return [(one.lowest, one.highest) for one in maps.maps]


def test_each_step_has_the_range_of_its_returns() -> None:
    """Returns -1, 0; -2, -1, 0; and -3, -2, -1."""
    games = [game(-1, 0), game(-1, -1, 0), game(-1, -1, -1)]
    assert ranges(fit_step_maps(games, gamma=1.0)) == [(-3, -1), (-2, 0), (-1, 0)]
    later = game(-1, first_step=3)  # seen from its fourth step on
    assert ranges(fit_step_maps([*games, later, game(0, first_step=3)], gamma=1.0))[3] == (-1, 0)


def test_no_step_counts_what_follows_more_than_once() -> None:
    """Returns from the first step on are 0 and -0.5, from the second on 1 and -1: the first has
    room for what follows. Without anything behind it, a step has the range of the whole."""
    assert ranges(fit_step_maps([game(-1, 1), game(0.5, -1)], gamma=1.0)) == [(-0.5, 1.5), (-1, 1)]
    assert ranges(fit_step_maps([game(-1, 1), game(1, -1)], gamma=0.5)) == [(-0.5, 0.5), (-1, 1)]
    assert ranges(fit_step_maps([game(0), game(-2, -1)], gamma=1.0)) == [(-3, 0), (-1, 2)]


def test_a_transition_between_two_maps() -> None:
    """From 0 to -6 to 0 to -2, reward -1: Q' = -1.5 is 0.25 there; Q = -2.5 is 3.5 / 6 here."""
    reward, discount = WORDLE.transition(-1.0, discount=1.0, following=RewardMap(-2.0, 0.0))
    assert (reward, discount) == pytest.approx((3 / 6, 2 / 6))
    assert reward + discount * 0.25 == pytest.approx(3.5 / 6)
    same = WORDLE.transition(-1.0, discount=0.9, following=WORDLE)
    assert same == pytest.approx((WORDLE.reward(-1.0, discount=0.9), 0.9))


def test_the_last_map_holds_for_all_that_follow() -> None:
    maps = StepMaps((WORDLE, RewardMap(-1.0, 0.0)))
    assert (maps.at(0), maps.at(1), maps.at(7)) == (WORDLE, maps.maps[1], maps.maps[1])


def test_data_without_a_difference_are_refused() -> None:
    same = replace(ENDED, steps=ENDED.steps[-1:]).earned
    with pytest.raises(ConfigError, match="got 2 for every return — expected returns that differ"):
        fit_reward_map([same, same], gamma=1.0)
    with pytest.raises(ConfigError, match="got no step"):
        fit_reward_map([], gamma=1.0)


@pytest.mark.parametrize(
    ("lowest", "highest", "message"),
    [
        pytest.param(1.8, 2.62, None, id="inside"),
        pytest.param(1.9, 3.0, "from step 1 on is 1.8 — expected 1.9 to 3", id="below"),
        pytest.param(0.0, 2.0, "from step 0 on is 2.62 — expected 0 to 2", id="above"),
    ],
)
def test_out_of_range_is_refused_by_name(
    lowest: float, highest: float, message: str | None
) -> None:
    reward_map = RewardMap(lowest, highest)
    if message is None:
        require_in_range(ENDED, reward_map, gamma=0.9, name="shard, trajectory 4")
        return
    with pytest.raises(
        ConfigError, match=rf"shard, trajectory 4 \(Environment, seed 7\).*{message}"
    ):
        require_in_range(ENDED, reward_map, gamma=0.9, name="shard, trajectory 4")


def test_what_follows_a_cut_counts() -> None:
    with pytest.raises(ConfigError, match=r"from step 0 on is 6\.994"):
        require_in_range(CUT, RewardMap(0.0, 6.5), gamma=0.9, name="one")
    nothing = replace(CUT, bootstrap_value=None)
    require_in_range(nothing, RewardMap(0.0, 6.5), gamma=0.9, name="one")


@pytest.mark.parametrize("ends", [(1.0, 1.0), (1.0, 0.0), (0.0, float("inf"))])
def test_no_range_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="expected two finite returns"):
        RewardMap(*ends)


def test_a_declared_map_is_read_back(tmp_path: Path) -> None:
    assert read_reward_map(tmp_path) is None
    write_reward_map(tmp_path, WORDLE)
    assert read_reward_map(tmp_path) == WORDLE
    (tmp_path / FILE_NAME).write_text('{"lowest": 0}', encoding="utf-8")
    with pytest.raises(StorageError, match=r"reward_map\.json: got something else than lowest"):
        read_reward_map(tmp_path)
