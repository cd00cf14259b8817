"""Every fault that `validate` knows, each in a data set that is right but for it."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from forethought.data.validation import Fault, Validation, first_problem, validate
from forethought.errors import StorageError
from forethought.rollouts import rows, store
from forethought.rollouts.store import write_shard
from forethought.targets.reward_map import RewardMap, write_reward_map
from forethought.types import (
    EnvironmentFailure,
    Message,
    ParsedAction,
    ParseFailure,
    Prompt,
    Span,
    Trajectory,
)
from tests.skips import needs
from tests.unit.data.builders import INVALID, make_step, make_trajectory, with_first_step

COMPLETION = make_step().completion
ACTION = make_step().action
NAN = float("nan")


def spans(thought: tuple[int, int], act: tuple[int, int]) -> ParsedAction:
    return replace(ACTION, thought_span=Span(*thought), action_span=Span(*act))


@pytest.mark.parametrize(
    "trajectory",
    [
        pytest.param(make_trajectory(0.0, 1.0), id="a whole episode"),
        pytest.param(with_first_step(action=INVALID), id="an invalid answer"),
        pytest.param(make_trajectory(failure=EnvironmentFailure.CRASH), id="a lost episode"),
        pytest.param(make_trajectory(1.0, first_step=3), id="a part of an episode"),
        pytest.param(with_first_step(value=0.5), id="a critic"),
    ],
)
def test_what_is_right_has_no_problem(trajectory: Trajectory) -> None:
    assert first_problem(trajectory, None, gamma=1.0) is None


@pytest.mark.parametrize(
    ("trajectory", "problem"),
    [
        (make_trajectory(0.0, environment_id=""), "environment_id is empty"),
        (make_trajectory(0.0, seed=-1), "seed -1, first_step 0"),
        (make_trajectory(), "it has no steps"),
        (make_trajectory(0.0, failure=EnvironmentFailure.CRASH), "its environment failed"),
        (make_trajectory(0.0, bootstrap_value=0.5), "bootstrap_value is 0.5"),
        (with_first_step(terminated=True), "step 0: the episode ends here"),
        (with_first_step(truncated=True), "step 0: the episode ends here"),
        (with_first_step(reward=NAN), "step 0: reward is nan"),
        (with_first_step(reward=float("inf")), "step 0: reward is inf"),
        (with_first_step(value=NAN), "step 0: value is nan"),
        (with_first_step(prompt=Prompt((), ())), "step 0: its prompt has no message"),
        (
            with_first_step(prompt=Prompt((Message("tool", "x"),), ())),  # pyright: ignore[reportArgumentType]
            "step 0: role is 'tool'",
        ),
        (
            with_first_step(completion=replace(COMPLETION, logprobs=(-0.5, 0.5, -1.0))),
            "step 0: log-prob is 0.5",
        ),
        (
            with_first_step(completion=replace(COMPLETION, logprobs=(-0.5, NAN, -1.0))),
            "step 0: log-prob is nan",
        ),
        (
            with_first_step(completion=replace(COMPLETION, token_offsets=(0, 4, 1))),
            "step 0: token offsets do not rise",
        ),
        (
            with_first_step(completion=replace(COMPLETION, token_offsets=(0, 1, 6))),
            "step 0: token offsets do not rise from 0 to 5",
        ),
        (with_first_step(action=spans((0, 1), (2, 3))), "do not tile the 3 tokens"),
        (with_first_step(action=spans((0, 1), (1, 2))), "do not tile the 3 tokens"),
        (with_first_step(action=spans((1, 1), (1, 3))), "do not tile the 3 tokens"),
        (
            with_first_step(action=replace(ACTION, is_valid=False)),
            "action_is_valid is False, but action_failure is None",
        ),
        (
            with_first_step(action=replace(ACTION, failure=ParseFailure.NO_ACTION)),
            "action_is_valid is True, but action_failure is no_action",
        ),
        (
            with_first_step(action=replace(ACTION, was_randomized=True)),
            "a valid action was drawn at random",
        ),
    ],
)
def test_each_problem_is_found(trajectory: Trajectory, problem: str) -> None:
    found = first_problem(trajectory, None, gamma=1.0)
    assert found is not None
    assert problem in found


def test_the_offending_shard_and_trajectory_are_named(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.parquet", [make_trajectory(0.0)])
    write_shard(tmp_path / "b.parquet", [make_trajectory(0.0), make_trajectory(0.0, NAN)])
    found = validate(tmp_path, gamma=1.0)
    assert (found.shards, found.trajectories, found.steps) == (2, 3, 4)
    (fault,) = found.faults
    assert (Path(fault.shard).name, fault.trajectory) == ("b.parquet", 1)
    assert fault.line.startswith(f"{tmp_path}/b.parquet: trajectory 1: step 1: reward is nan")


# The declared reward map


def test_returns_outside_the_declared_map_are_named(tmp_path: Path) -> None:
    good, bad = make_trajectory(0.0, 1.0, seed=7), make_trajectory(0.0, -2.0, seed=8)
    write_shard(tmp_path / "a.parquet", [good, bad])
    assert validate(tmp_path, gamma=1.0).faults == ()
    write_reward_map(tmp_path, RewardMap(-1.0, 1.0))
    (fault,) = validate(tmp_path, gamma=1.0).faults
    assert fault.trajectory == 1
    assert "seed 8" in fault.message
    assert "expected -1 to 1" in fault.message


def test_the_discount_decides_what_lies_inside(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.parquet", [make_trajectory(1.0, 1.0)])
    write_reward_map(tmp_path, RewardMap(0.0, 1.5))
    assert validate(tmp_path, gamma=0.5).faults == ()  # 1 + 0.5
    assert len(validate(tmp_path, gamma=0.6).faults) == 1  # 1 + 0.6


# Shards that cannot be read


def shards(folder: Path) -> Path:
    """Two shards; the one to be damaged comes first."""
    write_shard(folder / "a.parquet", [make_trajectory(0.0, seed=n) for n in range(50)])
    write_shard(folder / "b.parquet", [make_trajectory(0.0)])
    return folder / "a.parquet"


def only_fault(folder: Path) -> Fault:
    found: Validation = validate(folder, gamma=1.0)
    (fault,) = found.faults
    assert (Path(fault.shard).name, fault.trajectory) == ("a.parquet", None)
    assert (found.shards, found.trajectories) == (2, 1)  # The other shard was looked at.
    return fault


def test_a_shard_cut_in_half(tmp_path: Path) -> None:
    path = shards(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "got a damaged or foreign file" in only_fault(tmp_path).message


def test_an_altered_byte_anywhere(tmp_path: Path) -> None:
    path = shards(tmp_path)
    whole = path.read_bytes()
    for place in (5, len(whole) // 3, len(whole) // 2, len(whole) - 5):
        altered = bytearray(whole)
        altered[place] ^= 1
        path.write_bytes(bytes(altered))
        assert only_fault(tmp_path).line.startswith(f"{path}: got a damaged or foreign file")


def test_another_schema_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store, "SCHEMA_VERSION", "99")
        shards(tmp_path)
    write_shard(tmp_path / "b.parquet", [make_trajectory(0.0)])
    expected = f"got schema version 99, expected {rows.SCHEMA_VERSION}"
    assert expected in only_fault(tmp_path).message


def test_a_reward_map_that_is_none_is_refused(tmp_path: Path) -> None:
    shards(tmp_path)
    (tmp_path / "reward_map.json").write_text('{"lowest": "much"}')
    with pytest.raises(StorageError, match=r"reward_map\.json"):
        validate(tmp_path, gamma=1.0)


# Other tools


def test_other_tools_open_shards_as_plain_parquet(tmp_path: Path) -> None:
    """As pandas and `datasets` do: both read through pyarrow."""
    write_shard(tmp_path / "a.parquet", [make_trajectory(0.0, 1.0), make_trajectory(2.0)])
    table = pq.read_table(tmp_path)
    assert table["reward"].to_pylist() == [0.0, 1.0, 2.0]
    assert table["trajectory"].to_pylist() == [0, 0, 1]
    assert table["completion_token_ids"].to_pylist() == [[7, 8, 9]] * 3


def test_datasets_opens_shards(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason=needs("datasets", "pip install datasets"))
    write_shard(tmp_path / "a.parquet", [make_trajectory(0.0, 1.0)])
    write_shard(tmp_path / "b.parquet", [make_trajectory(2.0)])
    rows_read = datasets.load_dataset(
        "parquet",
        data_files=str(tmp_path / "*.parquet"),
        split="train",
        streaming=True,
    )
    assert [row["reward"] for row in rows_read] == [0.0, 1.0, 2.0]
    assert next(iter(rows_read))["messages"] == [{"role": "user", "text": "look", "image": None}]


def test_pandas_opens_shards(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason=needs("pandas", "pip install pandas"))
    write_shard(tmp_path / "a.parquet", [make_trajectory(0.0, 1.0)])
    frame = pandas.read_parquet(tmp_path / "a.parquet")
    assert frame.groupby("trajectory")["reward"].sum().tolist() == [1.0]
