"""Lines of JSON to trajectories; bad lines are refused by their numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from forethought.chat.messages import ProtocolError
from forethought.data.from_chat import ChatFormat, read_chat, read_line, require_chat
from forethought.errors import StorageError
from forethought.targets.reward_map import RewardMap

HOW = ChatFormat("Environment")
TALK = [
    {"role": "system", "content": "Play."},
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": '{"thoughts": "x", "action": "left"}'},
    {"role": "user", "content": "second"},
    {"role": "assistant", "content": "no action here"},
    {"role": "user", "content": "the end"},
]


def line(**changes: Any) -> bytes:
    content = {"messages": TALK, "rewards": [0, 1.5]} | changes
    return json.dumps({name: value for name, value in content.items() if value != ...}).encode()


def test_every_answer_is_a_step_of_all_that_was_said_before() -> None:
    trajectory = read_line(line(), HOW, default_seed=3)
    first, second = trajectory.steps
    assert [message.text for message in first.prompt.messages] == ["Play.", "first"]
    assert [message.role for message in second.prompt.messages] == [
        *("system", "user", "assistant", "user")
    ]
    assert (first.reward, second.reward, trajectory.seed) == (0.0, 1.5, 3)
    assert (first.terminated, second.terminated, second.truncated) == (False, True, False)
    assert first.completion.text == TALK[2]["content"]
    assert first.completion.token_ids == ()
    assert first.state_key != second.state_key


def test_the_action_is_parsed_or_it_is_all_of_the_text() -> None:
    parsed = read_line(line(), HOW, default_seed=0).steps
    assert [(s.action.action, s.action.is_valid) for s in parsed] == [("left", True), ("", False)]
    whole = read_line(line(), ChatFormat("Environment", "text"), default_seed=0).steps
    assert [(s.action.action, s.action.is_valid) for s in whole] == [
        (TALK[2]["content"], True),
        ("no action here", True),
    ]
    silent = [*TALK[:4], {"role": "assistant", "content": " "}]
    steps = read_line(
        line(messages=silent), ChatFormat("Environment", "text"), default_seed=0
    ).steps
    assert not steps[1].action.is_valid


@pytest.mark.parametrize(("answers", "action"), [("json", ""), ("json_last", "b")])
def test_what_follows_an_action_makes_it_invalid_or_is_not_read(answers: str, action: str) -> None:
    talk = [TALK[1], {"role": "assistant", "content": '{"action": "a", "action": "b"} so'}]
    how = ChatFormat("Environment", answers)  # pyright: ignore[reportArgumentType]
    (step,) = read_line(line(messages=talk, rewards=[0]), how, default_seed=0).steps
    assert (step.action.action, step.action.is_valid) == (action, bool(action))


@pytest.mark.parametrize(
    ("changes", "terminated", "truncated"),
    [
        ({}, True, False),
        ({"truncated": True}, False, True),
        ({"terminated": False}, False, False),
    ],
)
def test_how_it_ended(changes: dict[str, bool], terminated: bool, truncated: bool) -> None:
    last = read_line(line(**changes), HOW, default_seed=0).steps[-1]
    assert (last.terminated, last.truncated) == (terminated, truncated)


def test_it_does_not_end_twice() -> None:
    with pytest.raises(ProtocolError, match="terminated is True and truncated True"):
        read_line(line(terminated=True, truncated=True), HOW, default_seed=0)


def test_what_a_line_says_of_itself() -> None:
    own = line(environment_id="Own", seed=9, task_type="hard", success=True)
    trajectory = read_line(own, HOW, default_seed=0)
    assert (trajectory.environment_id, trajectory.seed) == ("Own", 9)
    assert (trajectory.task_type, trajectory.success) == ("hard", True)


def test_equal_conversations_are_equal_states() -> None:
    one, two = (read_line(line(seed=seed), HOW, default_seed=0) for seed in (1, 2))
    assert one.steps[1].state_key == two.steps[1].state_key


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (b"{", "got no JSON, or part of it"),
        (line()[:40], "got no JSON, or part of it"),
        (b"\xff", "got bytes that are no UTF-8"),
        (b"[]", "got a list, expected an object"),
        (line(messages=...), "messages is missing"),
        (line(rewards=...), "rewards is missing"),
        (line(reward=1), "got the field 'reward', expected environment_id"),
        (line(rewards=[0]), "got 1 rewards and 2 messages of the assistant"),
        (line(rewards=[0, "1"]), "expected a list of numbers"),
        (line(rewards=[0, True]), "expected a list of numbers"),
        (line(rewards=1), "expected a list of numbers"),
        (line(rewards=[0, float("inf")]), "a reward is not finite"),
        (line(rewards=[0, 10**400]), "a reward is not finite"),
        (line(messages=[TALK[1]], rewards=[]), "got 0 rewards and 0 messages"),
        (line(messages=[TALK[2]], rewards=[0]), "messages[0] is the assistant's"),
        (line(messages=[{"role": "robot", "content": ""}]), "messages[0].role is 'robot'"),
        (line(seed=-1), "seed is -1"),
        (line(seed="x"), "seed is 'x'"),
        (line(success=1), "success is 1 — expected true or false"),
        (line(task_type=1), "task_type is 1 — expected text"),
        (line(environment_id=""), "environment_id is empty"),
    ],
)
def test_a_bad_line_says_what_is_wrong(bad: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError) as error:
        read_line(bad, HOW, default_seed=0)
    assert complaint in str(error.value)


def test_an_environment_must_be_named() -> None:
    with pytest.raises(ProtocolError, match="environment_id is missing — name it, or type --env"):
        read_line(line(), ChatFormat(), default_seed=0)


def test_returns_outside_the_declared_range_are_refused() -> None:
    read_line(line(), ChatFormat("Environment", reward_map=RewardMap(0.0, 1.5)), default_seed=0)
    narrow = ChatFormat("Environment", reward_map=RewardMap(0.0, 1.0))
    with pytest.raises(ProtocolError, match="expected 0 to 1"):
        read_line(line(), narrow, default_seed=0)


# Files


def test_bad_lines_are_refused_by_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join([line(), b"{", b"", line(rewards=[]), line()]))
    with pytest.raises(StorageError) as error:
        require_chat(path, HOW)
    text = str(error.value)
    assert f"{path}: line 2: got no JSON" in text
    assert "; line 4: got 0 rewards" in text
    assert "line 3" not in text


def test_very_many_bad_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{\n" * 25)
    with pytest.raises(StorageError, match=r"line 10: .*; and 15 more bad lines$"):
        require_chat(path, HOW)


def test_blank_lines_are_no_trajectories_and_lines_give_seeds(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n" + line() + b"\n\n" + line() + b"\n")
    assert require_chat(path, HOW) == 2
    assert [trajectory.seed for trajectory in read_chat(path, HOW)] == [1, 3]


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="got an empty file"):
        require_chat(path, HOW)
