"""What is read from a shard is what was written: every type, every character, every bit."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forethought.rollouts.shard_files import ImageEncoder
from forethought.rollouts.store import (
    read_earned,
    read_shard,
    read_shards,
    stream_earned,
    write_shard,
)
from forethought.types import (
    Claim,
    Completion,
    Earned,
    EnvironmentFailure,
    FinishReason,
    Image,
    Message,
    Metric,
    ParsedAction,
    ParseFailure,
    Prompt,
    Span,
    Step,
    ThoughtFacts,
    Trajectory,
)
from tests.skips import needs

TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)  # Half surrogate pairs too.
FLOATS = st.floats(width=64)
FLOAT32S = st.floats(width=32)
INT32S = st.integers(-(2**31), 2**31 - 1)
INT64S = st.integers(-(2**63), 2**63 - 1)
ALLOWED = st.none() | st.lists(INT32S, max_size=2).map(tuple)
MEASURES = st.lists(st.builds(Metric, TEXTS, FLOATS), max_size=2).map(tuple)


@st.composite
def images(draw: st.DrawFn) -> Image:
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    pixels = draw(st.binary(min_size=height * width * 3, max_size=height * width * 3))
    return np.frombuffer(pixels, dtype=np.uint8).reshape(height, width, 3)


@st.composite
def completions(draw: st.DrawFn) -> Completion:
    n = draw(st.integers(0, 4))
    return Completion(
        token_ids=tuple(draw(st.lists(INT32S, min_size=n, max_size=n))),
        logprobs=tuple(draw(st.lists(FLOAT32S, min_size=n, max_size=n))),
        token_offsets=tuple(draw(st.lists(INT32S, min_size=n, max_size=n))),
        text=draw(TEXTS),
        finish_reason=draw(st.sampled_from(FinishReason)),
        temperature=draw(FLOATS),
        allowed_ids=draw(st.just(()) | st.lists(ALLOWED, min_size=n, max_size=n).map(tuple)),
    )


MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant"]),
    text=TEXTS,
    image=st.none() | images(),
)
PROMPTS = st.builds(
    Prompt,
    messages=st.lists(MESSAGES, max_size=3).map(tuple),
    token_ids=st.lists(INT32S, max_size=5).map(tuple),
)
SPANS = st.builds(Span, INT32S, INT32S)
ACTIONS = st.builds(
    ParsedAction,
    action=TEXTS,
    is_valid=st.booleans(),
    failure=st.none() | st.sampled_from(ParseFailure),
    thought_span=SPANS,
    action_span=SPANS,
    was_randomized=st.booleans(),
)
CLAIMS = st.lists(st.builds(Claim, TEXTS, st.none() | TEXTS, TEXTS), max_size=2).map(tuple)
FACTS = st.builds(
    ThoughtFacts,
    perceived=CLAIMS,
    inferred=CLAIMS,
    concluded_actions=st.lists(TEXTS, max_size=2).map(tuple),
)
STEPS = st.builds(
    Step,
    prompt=PROMPTS,
    completion=completions(),
    action=ACTIONS,
    reward=FLOATS,
    terminated=st.booleans(),
    truncated=st.booleans(),
    value=st.none() | FLOATS,
    policy_version=INT64S,
    state_key=TEXTS,
    duration_s=FLOATS,
    progress=st.none() | FLOATS,
    thought_facts=st.none() | FACTS,
    strict_format=st.none() | st.booleans(),
)
TRAJECTORIES = st.builds(
    Trajectory,
    environment_id=TEXTS,
    seed=INT64S,
    task_type=TEXTS,
    first_step=st.integers(0, 2**40),
    steps=st.lists(STEPS, max_size=3).map(tuple),
    bootstrap_value=st.none() | FLOATS,
    success=st.booleans(),
    metrics=MEASURES,
    failure=st.none() | st.sampled_from(EnvironmentFailure),
)


def plain(value: object) -> object:
    """A value that equals another's exactly when type and bits do: records by field, NaN too."""
    if dataclasses.is_dataclass(value):
        fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
        return type(value), [plain(field) for field in fields]
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return type(value), [plain(item) for item in value]
    return type(value), repr(value)


def assert_same(got: Sequence[Trajectory], expected: Sequence[Trajectory]) -> None:
    assert [plain(trajectory) for trajectory in got] == [plain(t) for t in expected]


@settings(max_examples=60, deadline=None)
@given(st.lists(TRAJECTORIES, max_size=4))
def test_any_trajectory_comes_back_exactly(trajectories: list[Trajectory]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.parquet"
        write_shard(path, trajectories)
        assert_same(read_shard(path), trajectories)
        assert repr([*stream_earned(path)]) == repr([one.earned for one in trajectories])


def a_step(*, text: str = "go", image: Image | None = None, **changes: object) -> Step:
    step = Step(
        prompt=Prompt(messages=(Message("user", text, image),), token_ids=(1, 2, 3)),
        completion=Completion((7,), (-0.5,), (0,), "go", FinishReason.STOP, 1.0),
        action=ParsedAction("go", True, None, Span(0, 0), Span(0, 1)),
        reward=1.0,
        terminated=False,
        truncated=False,
        value=None,
        policy_version=0,
        state_key="start",
        duration_s=0.01,
    )
    return dataclasses.replace(step, **changes)  # type: ignore[arg-type]


def a_trajectory(*steps: Step, seed: int = 0) -> Trajectory:
    return Trajectory("environment", seed, "task", 0, steps, None, False, ())


@pytest.mark.parametrize(
    "text", ["", "\0", "\ud83d", "\ude00\ud83d", "\ufffe", "\ufffe0041", "λ😀"]
)
def test_any_text_comes_back(tmp_path: Path, text: str) -> None:
    """Half surrogate pairs, and what stands for them in a shard, among others."""
    write_shard(tmp_path / "0.parquet", [a_trajectory(a_step(text=text, state_key=text))])
    [trajectory] = read_shard(tmp_path / "0.parquet")
    assert trajectory.steps[0].prompt.messages[0].text == text
    assert trajectory.steps[0].state_key == text


def test_a_trajectory_without_steps_survives_between_others(tmp_path: Path) -> None:
    crashed = dataclasses.replace(a_trajectory(), failure=EnvironmentFailure.CRASH)
    trajectories = [a_trajectory(a_step()), crashed, crashed, a_trajectory(a_step(), a_step())]
    write_shard(tmp_path / "0.parquet", trajectories)
    assert_same(read_shard(tmp_path / "0.parquet"), trajectories)


def test_episodes_of_one_seed_stay_apart(tmp_path: Path) -> None:
    """Group baselines play one seed many times: only their number tells the episodes apart."""
    group = [a_trajectory(a_step(reward=float(i)), seed=5) for i in range(4)]
    write_shard(tmp_path / "0.parquet", group)
    assert_same(read_shard(tmp_path / "0.parquet"), group)


def test_many_row_groups_keep_the_order_of_names(tmp_path: Path) -> None:
    long = a_trajectory(*[a_step(reward=float(i)) for i in range(300)], seed=1)
    short = [a_trajectory(a_step(), seed=seed) for seed in range(2, 400)]
    write_shard(tmp_path / "b.parquet", short)
    write_shard(tmp_path / "a.parquet", [long, *short[:2]])
    assert_same(list(read_shards(tmp_path)), [long, *short[:2], *short])


def test_what_was_earned_is_read_without_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed = dataclasses.replace(a_trajectory(), failure=EnvironmentFailure.CRASH)
    ended = a_trajectory(a_step(reward=2.0), a_step(reward=3.0, terminated=True))
    write_shard(tmp_path / "a.parquet", [ended, crashed])
    cut = dataclasses.replace(a_trajectory(a_step(truncated=True)), bootstrap_value=7.0)
    write_shard(tmp_path / "b.parquet", [cut])
    whole = pq.ParquetFile.read_row_group

    def without_texts(*about: Any, columns: Sequence[str]) -> Any:
        assert not {"messages", "completion_text", "state_key"} & set(columns)
        return whole(*about, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", without_texts)
    assert list(read_earned(tmp_path)) == [
        Earned(0, (2.0, 3.0), True, None, None),
        Earned(0, (), False, None, EnvironmentFailure.CRASH),
        Earned(0, (1.0,), False, 7.0, None),
    ]


def test_reading_does_not_wait_for_the_end(tmp_path: Path) -> None:
    """The first trajectory is there although a later shard is garbage."""
    write_shard(tmp_path / "a.parquet", [a_trajectory(a_step())])
    (tmp_path / "b.parquet").write_bytes(b"garbage")
    assert next(read_shards(tmp_path)).seed == 0


def test_an_empty_folder_holds_no_trajectories(tmp_path: Path) -> None:
    assert list(read_shards(tmp_path)) == []


def test_a_shard_of_the_same_name_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    write_shard(path, [a_trajectory(a_step(), seed=1)])
    write_shard(path, [a_trajectory(a_step(), seed=2)])
    assert [trajectory.seed for trajectory in read_shard(path)] == [2]


def test_equal_images_are_encoded_once_and_shared_when_read(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    encode = ImageEncoder()
    assert encode(noise) is encode(noise.copy())
    write_shard(tmp_path / "1.parquet", [a_trajectory(a_step(image=noise))])
    write_shard(tmp_path / "9.parquet", [a_trajectory(*[a_step(image=noise.copy())] * 9)])
    sizes = [(tmp_path / name).stat().st_size for name in ("1.parquet", "9.parquet")]
    assert sizes[1] < 1.2 * sizes[0]
    [trajectory] = read_shard(tmp_path / "9.parquet")
    assert trajectory.steps[0].prompt.images[0] is trajectory.steps[8].prompt.images[0]


def test_images_of_equal_bytes_and_other_shapes_differ(tmp_path: Path) -> None:
    flat, tall = np.zeros((2, 8, 3), np.uint8), np.zeros((8, 2, 3), np.uint8)
    write_shard(tmp_path / "0.parquet", [a_trajectory(a_step(image=flat), a_step(image=tall))])
    [trajectory] = read_shard(tmp_path / "0.parquet")
    assert [step.prompt.images[0].shape for step in trajectory.steps] == [(2, 8, 3), (8, 2, 3)]


@pytest.mark.filterwarnings("default")
def test_pandas_reads_the_columns(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason=needs("pandas", "pip install pandas"))
    write_shard(tmp_path / "0.parquet", [a_trajectory(a_step(reward=0.5), a_step(reward=2.0))])
    frame = pandas.read_parquet(tmp_path / "0.parquet")
    assert list(frame["reward"]) == [0.5, 2.0]
    assert list(frame["completion_token_ids"][0]) == [7]
    assert frame["messages"][0][0]["role"] == "user"


@pytest.mark.filterwarnings("default")
def test_datasets_reads_the_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason=needs("datasets", "pip install datasets"))
    shard, cache = tmp_path / "0.parquet", tmp_path / "cache"
    write_shard(shard, [a_trajectory(a_step(reward=0.5), a_step(image=np.zeros((2, 2, 3), "u1")))])
    rows = datasets.load_dataset(
        "parquet", data_files=str(shard), split="train", cache_dir=str(cache)
    )
    assert rows["reward"][:] == [0.5, 1.0]
    assert rows[0]["messages"] == [{"role": "user", "text": "go", "image": None}]
    assert rows[1]["messages"][0]["image"].startswith(b"\x89PNG")
