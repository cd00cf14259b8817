"""The form of an answer: JSON fields in order, `action` last. Written here, read here."""

import json
import re
from bisect import bisect_right
from collections.abc import Collection

from forethought.config_parts import AnswerFormat
from forethought.environments.contract import Advice, WithMeanings
from forethought.types import Completion, ParsedAction, ParseFailure, Span

# The value may hold escaped quotes; an unescaped one ends it. Every alternative consumes
# a character, so matching is linear in the length of any text.
ACTION_FIELD = re.compile(r'"action"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
ACTION_KEY = re.compile(r'"action"\s*:')


def write_answer(advice: Advice, answer_format: AnswerFormat) -> str:
    """An expert's advice as the text that a model should learn to write."""
    fields = [*advice.fields, ("action", json.dumps(advice.action))]
    if answer_format == "action_only":
        fields = fields[-1:]
    return "{\n" + ",\n".join(f'"{name}": {value}' for name, value in fields) + "\n}"


def parse_answer(completion: Completion, actions: Collection[str] | None) -> ParsedAction:
    """Finds the action in a completion. Total: any text gives a `ParsedAction`.

    The last `"action": "..."` counts, as in JSON, where a later key overrides an earlier
    one. An action is valid only if it equals a known one exactly; RL4VLM's search for a
    known action anywhere in the text turns "go to cabinet 12" into "go to cabinet 1". Where
    the world itself says what a text means (`WithMeanings`), it is that action.

    Args:
        completion: text with the offset of each of its tokens.
        actions: what is allowed now, or None where any text is an action.
    """
    text = completion.text
    matches = list(ACTION_FIELD.finditer(text))
    if not matches:
        keys = list(ACTION_KEY.finditer(text))
        split = _token_at(completion, keys[-1].start()) if keys else len(completion.token_ids)
        return _parsed(completion, "", ParseFailure.NO_ACTION, split)
    match = matches[-1]
    action = _unescape(match.group(1)).strip()
    if isinstance(actions, WithMeanings):
        action = actions.meant_by(action) or action
    known = actions is None or action in actions
    failure = None if known else ParseFailure.UNKNOWN_ACTION
    return _parsed(completion, action, failure, _token_at(completion, match.start()))


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
