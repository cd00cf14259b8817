"""`forethought data …`: what is printed, what is written, and the exit code."""

import json
from pathlib import Path

import pytest

from forethought.rollouts.store import write_shard
from tests.unit.cli.terminal import Type
from tests.unit.data.builders import make_trajectory


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    write_shard(folder / "a.parquet", [make_trajectory(0.0, 1.0, success=True)])
    write_shard(folder / "b.parquet", [make_trajectory(-2.0, seed=1, task_type="other")])
    return folder


def test_describe_prints_and_writes_a_page(type_: Type, data: Path) -> None:
    outcome = type_("data describe data")
    assert outcome.code == 0
    assert not outcome.err
    assert "data: Environment, 0.0 MB, shards: 2" in outcome.out
    assert "other         1" in outcome.out
    assert "returns-to-go at gamma 1: -2 to 1" in outcome.out
    assert outcome.out.endswith("written: data/description.html\n")
    assert (data / "description.html").read_text().startswith("<!doctype html>")


def test_describe_as_json(type_: Type, data: Path) -> None:
    outcome = type_("data describe data/a.parquet --json --page own.html --gamma 0.5")
    content = json.loads(outcome.out)
    assert (content["episodes"], content["returns_to_go"]) == (1, [0.5, 1.0])
    assert Path("own.html").exists()
    assert not (data / "description.html").exists()


def test_validate_finds_nothing_wrong(type_: Type, data: Path) -> None:
    outcome = type_("data validate data")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "shards: 2, trajectories: 2, steps: 3, faults: 0\n"


def test_validate_names_every_fault_and_exits_with_1(type_: Type, data: Path) -> None:
    half = (data / "a.parquet").read_bytes()
    (data / "a.parquet").write_bytes(half[: len(half) // 2])
    write_shard(data / "b.parquet", [make_trajectory(0.0), make_trajectory()])
    outcome = type_("data validate data")
    assert outcome.code == 1
    first, second, last = outcome.out.splitlines()
    assert first.startswith("data/a.parquet: got a damaged or foreign file")
    assert second.startswith("data/b.parquet: trajectory 1: it has no steps")
    assert last == "shards: 2, trajectories: 2, steps: 1, faults: 2"
    faults = json.loads(type_("data validate data --json").out)["faults"]
    assert [(fault["shard"], fault["trajectory"]) for fault in faults] == [
        ("data/a.parquet", None),
        ("data/b.parquet", 1),
    ]


def test_many_faults_are_counted_and_not_all_printed(type_: Type, data: Path) -> None:
    write_shard(data / "b.parquet", [make_trajectory(seed=n) for n in range(30)])
    lines = type_("data validate data").out.splitlines()
    assert lines[-2] == "… and 10 more (--json lists them)"
    assert len(lines) == 22


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            "data describe nowhere",
            "nowhere: does not exist — expected a file or folder of trajectories",
        ),
        (
            "data validate nowhere",
            "nowhere: does not exist — expected a file or folder of trajectories",
        ),
        ("data describe data --gamma 2", "gamma is 2.0 — expected 0 to 1"),
        ("data validate data --gamma -1", "gamma is -1.0 — expected 0 to 1"),
        ("data describe data --page nowhere/x.html", "nowhere/x.html: cannot be written: "),
    ],
)
def test_a_refusal_is_one_line(type_: Type, data: Path, words: str, line: str) -> None:
    outcome = type_(words)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {line}")
    assert outcome.err.count("\n") == 1


# convert


LINE = (
    '{"messages": [{"role": "user", "content": "look"}, {"role": "assistant", "content": "%s"}], '
    '"rewards": [%s], "success": true}\n'
)


def chats(*lines: str) -> Path:
    path = Path("chats.jsonl")
    path.write_text("".join(lines))
    return path


def test_convert_writes_shards_that_are_right(type_: Type) -> None:
    chats(LINE % ("left", 1), LINE % ("right", 0), LINE % ("left", 1))
    words = "--environment-id Environment --responses text --shard 2 --reward-range 0 1"
    outcome = type_(f"data convert chats.jsonl {words} --output data/x")
    assert outcome.code == 0
    assert outcome.out.startswith("3 episodes, 3 steps; success 100.0 %")
    assert outcome.out.endswith("next: forethought data describe data/x\n")
    files = sorted(path.name for path in Path("data/x").iterdir())
    assert files == ["episodes_0000000.parquet", "episodes_0000002.parquet", "reward_map.json"]
    assert type_("data validate data/x").code == 0
    assert "reward map: 0 to 1 becomes 0 to 1" in type_("data describe data/x").out


def test_a_bad_line_leaves_nothing_behind(type_: Type) -> None:
    chats(LINE % ("left", 1), "{\n", LINE % ("left", 7))
    words = "--environment-id Environment --reward-range 0 1"
    outcome = type_(f"data convert chats.jsonl {words} --output data/x")
    assert outcome.code == 2
    (line,) = outcome.lines
    assert line.startswith("error: chats.jsonl: line 2: got no JSON")
    assert "; line 3: " in line
    assert not Path("data").exists()


def test_a_folder_that_is_there_is_left_alone(type_: Type, data: Path) -> None:
    chats(LINE % ("left", 1))
    before = sorted(data.iterdir())
    outcome = type_("data convert chats.jsonl --environment-id Environment --output data")
    assert outcome.code == 2
    assert outcome.lines == ["error: data: is there already — name another folder"]
    assert sorted(data.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("nowhere.jsonl --output x", "nowhere.jsonl: cannot be read: No such file"),
        ("chats.jsonl --output x", "chats.jsonl: line 1: environment_id is missing"),
        ("chats.jsonl --output x --shard 0", "shard is 0 — expected 1 or more"),
        ("chats.jsonl --output x --reward-range 1 0", "reward map is [1.0, 0.0]"),
    ],
)
def test_convert_refuses_in_one_line(type_: Type, words: str, line: str) -> None:
    chats(LINE % ("left", 1))
    outcome = type_(f"data convert {words}")
    assert outcome.code == 2
    assert outcome.lines[0].startswith(f"error: {line}")
    assert not Path("x").exists()
