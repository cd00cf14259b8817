"""Holds an answer's action field to the actions that may be named.

From the `"action"` key on, a token may come next only if what is written then can still become
the name of one of the actions. Thoughts are free, and so is everything behind the field.
"""

import json
import re
from collections.abc import Iterator, Sequence

from forethought.policies.token_texts import TokenTexts

_FIELD = re.compile(r'\s*(:\s*("(?P<value>(?:[^"\\]|\\.)*))?)?', re.DOTALL)
"""What may stand between the key and the end of its value."""
_KEY = '"action"'


class ActionField:
    """What one answer may write next."""

    def __init__(self, texts: TokenTexts, choices: Sequence[str]) -> None:
        self._texts = texts
        self._names = [json.dumps(choice, ensure_ascii=False)[1:-1] for choice in choices]
        self._written = ""
        self._known: dict[str, tuple[int, ...]] = {}

    def write(self, token: int) -> None:
        """Takes note of a token that was drawn."""
        if token < len(self._texts.of_id):  # Models have ids beyond their tokenizer's.
            self._written += self._texts.of_id[token]

    def allowed(self) -> tuple[int, ...] | None:
        """Ids that may come next, ascending; None: any may.

        Any may, too, where what stands in the field already is the beginning of no action: a
        token that ran from the key into the value was free.
        """
        _, key, behind = self._written.rpartition(_KEY)
        match = _FIELD.fullmatch(behind) if key else None
        if match is None:
            return None
        if behind not in self._known:
            found = {
                token
                for continuation in self._continuations(behind, match.group("value"))
                for token in self._texts.leading_into(continuation)
            }
            self._known[behind] = tuple(sorted(found))
        return self._known[behind] or None

    def _continuations(self, behind: str, value: str | None) -> Iterator[str]:
        """Texts with which the field can be brought to its end."""
        for name in self._names:
            if value is not None:
                if name.startswith(value):
                    yield f'{name[len(value) :]}"'
            elif ":" in behind:
                yield f'"{name}"'
                if behind.endswith(":"):
                    yield f' "{name}"'
            else:
                yield f':"{name}"'
                yield f': "{name}"'
