"""The history of an episode as text: what was done and what the world replied, turn by turn.

Worlds whose state is the conversation so far give it as their observation's text;
`prompts/transcript.py` reads it back and tells it as a conversation.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

MAX_ACTION = 200
"""Characters of an action that are kept; no action of the worlds is as long."""

_MARK = "> "


class Turn(NamedTuple):
    """One action, and what the world replied to it."""

    action: str
    reply: str
    """One line."""


def write_transcript(turns: Iterable[Turn]) -> str:
    """Two lines per turn: the action behind "> ", escaped as in JSON, and the reply.

    Actions are any text, so they are escaped and cut: no action can pass for a reply.
    """
    return "\n".join(f"{_MARK}{json.dumps(_cut(action))[1:-1]}\n{reply}" for action, reply in turns)


def read_transcript(text: str) -> tuple[Turn, ...]:
    """The turns of a transcript.

    Raises:
        ValueError: the text was not written by `write_transcript`.
    """
    lines = text.split("\n") if text else []
    marked = all(line.startswith(_MARK) for line in lines[::2])
    if len(lines) % 2 or not marked:
        raise ValueError(
            f"got {text[:80]!r}, expected lines of actions (> ...) and replies in turn"
        )
    actions = (_unescape(line.removeprefix(_MARK)) for line in lines[::2])
    return tuple(Turn(action, reply) for action, reply in zip(actions, lines[1::2], strict=True))


def _unescape(action: str) -> str:
    return json.loads(f'"{action}"') if "\\" in action else action


def _cut(action: str) -> str:
    return action if len(action) <= MAX_ACTION else action[: MAX_ACTION - 1] + "…"
