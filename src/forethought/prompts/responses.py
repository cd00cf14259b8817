"""The form of a response, JSON fields in order with `action` last: written, parsed, checked.

A response ends at its action. If text after it were accepted, reinforcement learning would reward
that text with the action before it, and the form would drift: a policy comes to write its action
again and again, to the limit."""

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import Any

from forethought.configs.parts import ResponseForm, ResponseFormat
from forethought.environments.contract import (
    ExpertAction,
    Prompter,
    ResolveAction,
    WithResponseFields,
)
from forethought.types import Completion, ParsedAction, ParseFailure, Span

# The value may hold escaped quotes; an unescaped one ends it. Every alternative consumes
# a character, so matching is linear in the length of any text.
ACTION_FIELD = re.compile(r'"action"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
ACTION_KEY = re.compile(r'"action"\s*:')
AFTER_ACTION = re.compile(r"\s*+\}?\s*+(?P<fence>```)?\s*+")
"""What may follow the action's value; the fence, where the response has opened one before. It
gives nothing back, so matching is linear in the length of any white space."""
END_OF_THINKING = "</think>"
"""Ends the thinking block of reasoning models, which may quote the form."""


def write_response(expert_action: ExpertAction, response_format: ResponseFormat) -> str:
    """An expert's action as the text that a model should learn to write."""
    fields = [*expert_action.fields, ("action", json.dumps(expert_action.action))]
    if response_format == "action_only":
        fields = fields[-1:]
    return "{\n" + ",\n".join(f'"{name}": {value}' for name, value in fields) + "\n}"


def parse_response(
    completion: Completion,
    actions: Sequence[str] | None,
    *,
    form: ResponseForm = "strict",
    resolve_action: ResolveAction | None = None,
) -> ParsedAction:
    """Finds the action in a completion. Total: any text gives a `ParsedAction`.

    strict: the first `"action": "..."` after the last `</think>`, if there is one, counts; where
    anything but `AFTER_ACTION` follows, the response is invalid and names no action at all, so that
    no environment executes it. last_field: the last one counts, as in JSON, where a later key
    overrides an earlier one, whatever follows. text_search: see `_found_in_text`; without a list
    of actions, as last_field.

    An action is valid only if it equals a known one exactly. Where `resolve_action` names
    an allowed action for the text, it is that action.

    Args:
        completion: text with the offset of each of its tokens.
        actions: what is allowed now, or None where any text is an action.
        form: of a valid response (`prompt.answer_form`).
        resolve_action: the environment's (`WithActionResolution`), if it has one.
    """
    text = completion.text
    begin = max(text.rfind(END_OF_THINKING), 0) if form == "strict" else 0
    counts = 0 if form == "strict" else -1
    keys = [match.start() for match in ACTION_KEY.finditer(text, begin)]
    if form == "text_search" and actions is not None and keys:
        found = _found_in_text(text[keys[0] :], actions)
        failure = ParseFailure.UNKNOWN_ACTION if found is None else None
        return _parsed(completion, found or "", failure, _token_at(completion, keys[0]))
    matches = list(ACTION_FIELD.finditer(text, begin))
    if not matches:
        split = _token_at(completion, keys[counts]) if keys else len(completion.token_ids)
        return _parsed(completion, "", ParseFailure.NO_ACTION, split)
    match = matches[counts]
    split = _token_at(completion, match.start())
    if form == "strict" and not _ends_after(text, match):
        return _parsed(completion, "", ParseFailure.TRAILING_TEXT, split)
    action = _unescape(match.group(1)).strip()
    if resolve_action is not None and actions is not None:
        action = resolve_action(action, actions) or action
    known = actions is None or action in actions
    return _parsed(completion, action, None if known else ParseFailure.UNKNOWN_ACTION, split)


def _ends_after(text: str, field: re.Match[str]) -> bool:
    """Whether the response ends at this field."""
    rest = AFTER_ACTION.fullmatch(text, field.end())
    return rest is not None and (rest["fence"] is None or "```" in text[: field.start()])


def _found_in_text(text: str, actions: Collection[str]) -> str | None:
    """The only known action in a text, in any case; None: there is none, or there are several.

    RL4VLM's code (`text_projection`), which reads all that follows the key; like there, an action
    that is a part of another (1 of 10) is looked for in what is left without that one.
    """
    left = text.lower()
    found: list[str] = []
    for action in sorted(actions, key=len, reverse=True):
        if action and action.lower() in left:
            found.append(action)
            left = left.replace(action.lower(), "")
    return found[0] if len(found) == 1 else None


def _parsed(
    completion: Completion, action: str, failure: ParseFailure | None, split: int
) -> ParsedAction:
    return ParsedAction(
        action=action,
        is_valid=failure is None,
        failure=failure,
        thought_span=Span(0, split),
        action_span=Span(split, len(completion.token_ids)),
    )


def _token_at(completion: Completion, quote: int) -> int:
    """Index of the token that holds the quotation mark at this place of the text.

    The last token to start there or before: a quotation mark is whole in one token, so
    tokens that share an offset with it and come first have no text of their own. 0 where
    there are no tokens.
    """
    return max(bisect_right(completion.token_offsets, quote) - 1, 0)


def _unescape(value: str) -> str:
    """JSON's escapes read; half a surrogate pair, which no tokenizer takes, becomes U+FFFD."""
    try:
        decoded: object = json.loads(f'"{value}"', strict=False)
    except ValueError:
        return value
    whole = decoded if isinstance(decoded, str) else value
    return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def response_fields(prompter: Prompter) -> tuple[str, ...]:
    """The JSON fields that a prompter asks for, in order; empty where it asks for no JSON."""
    return prompter.response_fields if isinstance(prompter, WithResponseFields) else ()


def asks_for_thoughts(fields: tuple[str, ...]) -> bool:
    """Whether a response with these fields says more than its action."""
    return len(fields) > 1


def strict_format(response: str, fields: tuple[str, ...]) -> bool | None:
    """Whether a response is one JSON object with exactly these fields, in this order, whose
    action is a text. Nothing but blanks may surround it. Total: any text is taken.

    Returns:
        None where no fields are asked for.
    """
    if not fields:
        return None
    try:
        read: Any = json.loads(response, object_pairs_hook=_Object, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    if not isinstance(read, _Object):
        return False
    names = tuple(name for name, _ in read)
    return names == fields and isinstance(read[-1][1], str)


class _Object(tuple[tuple[str, Any], ...]):
    """A JSON object with its fields as they are written, repetitions included."""


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
