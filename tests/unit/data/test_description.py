"""What `describe` counts, by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forethought.data.description import Distribution, Numbers, describe, to_json
from forethought.errors import StorageError
from forethought.rollouts.store import read_shards, stream_shard, write_shard
from forethought.targets.reward_map import RewardMap, write_reward_map
from forethought.types import EnvironmentFailure, Message, Prompt, Trajectory
from tests.unit.data.builders import (
    INVALID,
    CountedGroups,
    make_step,
    make_trajectory,
    with_first_step,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two shards: returns 1, 3 and -2 in whole episodes; a part of one; and a lost one."""
    write_shard(
        tmp_path / "a.parquet",
        [
            make_trajectory(0.0, 1.0, success=True, seed=1),
            make_trajectory(1.0, 1.0, 1.0, success=True, seed=2, task_type="other"),
        ],
    )
    part = make_trajectory(5.0, 5.0, seed=4, first_step=3)
    lost = make_trajectory(seed=5, failure=EnvironmentFailure.CRASH)
    write_shard(tmp_path / "b.parquet", [make_trajectory(-2.0, seed=2), part, lost])
    return tmp_path


def test_whole_episodes_parts_and_lost_ones_are_told_apart(data: Path) -> None:
    whole = describe(data, gamma=1.0).whole
    assert (whole.episodes, whole.parts, whole.lost, whole.steps) == (3, 1, 1, 8)
    assert whole.returns.values_K.tolist() == [-2.0, 1.0, 3.0]
    assert whole.mean_return == pytest.approx(2 / 3)
    assert whole.success_rate == pytest.approx(2 / 3)
    assert whole.episode_steps.values_K.tolist() == [1.0, 2.0, 3.0]
    # Rewards are those of every step, also in parts of episodes.
    assert whole.rewards.values_K.tolist() == [-2.0, 0.0, 1.0, 5.0]
    assert whole.rewards.counts_K.tolist() == [1, 1, 4, 2]


def test_kinds_of_task_have_rows_of_their_own(data: Path) -> None:
    description = describe(data, gamma=1.0)
    assert [(t.task_type, t.episodes, t.success_rate) for t in description.tasks] == [
        ("other", 1, 1.0),
        ("task", 2, 0.5),
    ]
    assert describe(data / "b.parquet", gamma=1.0).tasks == ()
    # Seed 2 was played twice; the part and the lost episode are starts, too.
    assert (description.shards, description.seeds, description.images) == (2, 4, 0)


def test_the_range_of_returns_counts_every_step(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.parquet", [make_trajectory(1.0, -4.0, 2.0)])
    # At γ = 1/2, backwards: 2; -4 + 1 = -3; 1 - 1.5 = -0.5.
    assert describe(tmp_path, gamma=0.5).returns_to_go == (-3.0, 2.0)
    assert describe(tmp_path, gamma=1.0).returns_to_go == (-2.0, 2.0)


def test_the_declared_reward_map_is_told(data: Path) -> None:
    assert describe(data, gamma=1.0).reward_map is None
    write_reward_map(data, RewardMap(-2.0, 10.0))
    assert describe(data, gamma=1.0).reward_map == RewardMap(-2.0, 10.0)
    assert describe(data / "a.parquet", gamma=1.0).reward_map == RewardMap(-2.0, 10.0)


def test_invalid_answers_and_lengths(tmp_path: Path) -> None:
    image = Message("user", "look", np.zeros((4, 4, 3), np.uint8))
    write_shard(
        tmp_path / "a.parquet",
        [
            with_first_step(action=INVALID),
            with_first_step(prompt=Prompt((image,), token_ids=())),
        ],
    )
    whole = describe(tmp_path, gamma=1.0).whole
    assert (whole.invalid, whole.invalid_rate) == (1, 0.25)
    assert whole.prompt_tokens.counts_K.tolist() == [3]  # Of four, one was never tokenized.
    assert (whole.completion_tokens.mean, whole.completion_characters.mean) == (3.0, 5.0)
    assert describe(tmp_path, gamma=1.0).images == 1


def test_quantiles_are_values_that_occur() -> None:
    numbers = Numbers()
    for number in (4.0, 1.0, 1.0, 2.0):
        numbers.add(number)
    found = numbers.distribution()
    assert [found.quantile(share) for share in (0.25, 0.5, 0.51, 0.75, 0.76, 1.0)] == [
        *(1.0, 1.0, 2.0, 2.0, 4.0, 4.0)
    ]
    assert (found.total, found.mean, found.lowest, found.highest) == (4, 2.0, 1.0, 4.0)


def test_no_numbers_have_no_distribution() -> None:
    empty: Distribution = Numbers().distribution()
    assert empty.total == 0
    assert np.isnan(empty.mean)


def test_json_has_null_for_what_does_not_exist(tmp_path: Path, data: Path) -> None:
    content = json.loads(to_json(describe(data, gamma=1.0)))
    assert content["return"] == {
        "count": 3,
        "mean": pytest.approx(2 / 3),
        "lowest": -2.0,
        "q10": -2.0,
        "q50": 1.0,
        "q90": 3.0,
        "highest": 3.0,
    }
    assert content["tasks"]["other"]["mean_return"] == 3.0
    write_shard(tmp_path / "lost.parquet", [make_trajectory(failure=EnvironmentFailure.TIMEOUT)])
    nothing = json.loads(to_json(describe(tmp_path / "lost.parquet", gamma=1.0)))
    assert nothing["success_rate"] is nothing["return"] is nothing["returns_to_go"] is None


def test_a_reward_that_is_not_finite_is_named(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.parquet", [make_trajectory(0.0), make_trajectory(float("nan"))])
    with pytest.raises(StorageError, match=r"a\.parquet: trajectory 1: step 0: reward is nan"):
        describe(tmp_path, gamma=1.0)


@pytest.mark.parametrize("make", ["nowhere", "empty"])
def test_what_is_no_data_set_is_refused(tmp_path: Path, make: str) -> None:
    if make == "empty":
        (tmp_path / make).mkdir()
    with pytest.raises(StorageError, match=f"{make}: (got|does not exist) .*trajectories"):
        describe(tmp_path / make, gamma=1.0)


# Larger than memory


def test_one_row_group_is_in_memory_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 episodes of two steps: groups of 256 steps, so 128 + 128 + 44 episodes."""
    path = tmp_path / "a.parquet"
    write_shard(path, [make_trajectory(0.0, 1.0, seed=n) for n in range(300)])
    groups = CountedGroups(monkeypatch)
    trajectories = stream_shard(path)
    assert groups.read == []
    for number in range(300):
        assert next(trajectories).seed == number
        assert groups.read == list(range(number // 128 + 1))


def test_a_folder_is_read_shard_by_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        write_shard(tmp_path / f"{name}.parquet", [make_trajectory(0.0)])
    (tmp_path / "b.parquet").write_bytes(b"not a shard")
    groups = CountedGroups(monkeypatch)
    trajectories = read_shards(tmp_path)
    next(trajectories)
    assert groups.read == [0]
    with pytest.raises(StorageError, match=r"b\.parquet"):
        next(trajectories)


def test_a_trajectory_that_is_out_of_order_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forethought.rollouts import store

    sound = store.to_table

    def out_of_order(numbered: Sequence[tuple[int, Trajectory]], images: Any) -> Any:
        return sound([(n + n // 2, trajectory) for n, trajectory in numbered], images)

    monkeypatch.setattr(store, "to_table", out_of_order)
    path = tmp_path / "a.parquet"
    write_shard(path, [make_trajectory(0.0) for _ in range(3)])  # Numbered 0, 1, 3.
    with pytest.raises(StorageError, match="trajectory 2 is missing, 3 is here"):
        list(stream_shard(path))


def test_steps_are_what_the_builders_say() -> None:
    assert make_step().completion.text == "{ go}"
