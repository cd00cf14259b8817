"""Which token is drawn: from logits and a uniform number, and from those tokens that may come next.

`ActionField` holds a response's action field to the actions that may be named. From the `"action"`
key on, a token may come next only if what is written then can still become the name of one of the
actions; and after the name only what a response may end with. Thoughts are free. So every response
that reaches its field names an action, if it is not cut off in the middle of it, and ends there.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.models.token_text import REPLACEMENT, TokenBytes


class Drawn(NamedTuple):
    """One token for each row, and its log-probability."""

    ids_B: Tensor
    logprobs_B: Tensor


def draw_tokens(*, logits_BV: Tensor, temperatures_B: Tensor, uniforms_B: Tensor) -> Drawn:
    """Inverse-transform sampling: the first token at which the cumulated probability
    exceeds the uniform number.

    Args:
        logits_BV: any float type; log-probs are computed in fp32.
        temperatures_B: above 0 divides the logits; 0 takes the largest logit, with its
            log-probability at temperature 1.
        uniforms_B: in [0, 1), one per row.
    """
    greedy_B = temperatures_B == 0
    divisor_B = torch.where(greedy_B, 1.0, temperatures_B)
    logprobs_BV = torch.log_softmax(logits_BV.float() / divisor_B[:, None], dim=-1)
    cumulated_BV = logprobs_BV.exp().cumsum(-1, dtype=torch.float64)
    # Scaled by the total, which rounding leaves a little off 1.
    thresholds_B = uniforms_B.double() * cumulated_BV[:, -1]
    ids_B = torch.searchsorted(cumulated_BV, thresholds_B[:, None], right=True).squeeze(-1)
    ids_B = ids_B.clamp(max=logits_BV.shape[-1] - 1)
    if greedy_B.any():
        ids_B = torch.where(greedy_B, logits_BV.argmax(-1), ids_B)
    return Drawn(ids_B, logprobs_BV.gather(-1, ids_B[:, None]).squeeze(-1))


def nucleus(logits_V: Tensor, *, temperature: float, top_p: float) -> tuple[int, ...]:
    """Ids, ascending, of the fewest most likely tokens that together have probability `top_p`.

    Holtzman et al. 2020, Eq. 2, at the temperature that is sampled at (above 0).
    """
    probabilities_V, order_V = (logits_V.float() / temperature).softmax(-1).sort(descending=True)
    is_needed_V = (probabilities_V.cumsum(-1) - probabilities_V < top_p) & (probabilities_V > 0)
    return tuple(sorted(order_V[is_needed_V].tolist()))


_KEY = b'"action"'
_BEFORE_VALUE = re.compile(rb'\s*(?P<colon>:\s*(?P<value>".*)?)?', re.DOTALL)
"""What may come between the key and its value, and the value from its opening mark on."""
_END = re.compile(rb"\s*+\}?\s*+")
"""What may come after the value (`prompts/responses.py` reads it so)."""


class _Name:
    """An action as a JSON string: every character as it is or, beyond ASCII, escaped."""

    def __init__(self, action: str) -> None:
        self._plain = [_inside(character, ensure_ascii=False) for character in action]
        self._escaped = [_inside(character, ensure_ascii=True) for character in action]

    def continuations(self, value: bytes) -> tuple[bytes, ...]:
        """What may follow what is written of the name, its closing mark included; none if that is
        the beginning of another name."""
        at = 0
        for place, forms in enumerate(zip(self._plain, self._escaped, strict=True)):
            whole = next((form for form in forms if value.startswith(form, at)), None)
            if whole is None:
                begun = value[at:]
                rests = [form[len(begun) :] for form in forms if form.startswith(begun)]
                return tuple(rest + end for rest in rests for end in self._ends(place + 1))
            at += len(whole)
        return self._ends(len(self._plain)) if at == len(value) else ()

    def behind(self, value: bytes) -> bytes | None:
        """What is written behind the name and its closing mark; None: it is not whole."""
        at = 0
        for forms in zip(self._plain, self._escaped, strict=True):
            whole = next((form for form in forms if value.startswith(form, at)), None)
            if whole is None:
                return None
            at += len(whole)
        return value[at + 1 :] if value[at : at + 1] == b'"' else None

    def _ends(self, place: int) -> tuple[bytes, ...]:
        """The rest of the name from a place on, in both spellings."""
        forms = (self._plain[place:], self._escaped[place:])
        return tuple(dict.fromkeys(b"".join(form) + b'"' for form in forms))


def _inside(character: str, *, ensure_ascii: bool) -> bytes:
    """A character within a JSON string."""
    return json.dumps(character, ensure_ascii=ensure_ascii)[1:-1].encode("utf-8", "surrogatepass")


class ActionField:
    """What one answer may write next."""

    def __init__(
        self, tokens: TokenBytes, choices: Sequence[str], stop_ids: Sequence[int] = ()
    ) -> None:
        """
        Args:
            stop_ids: tokens that end an answer.
        """
        self._tokens = tokens
        self._names = [_Name(choice) for choice in choices]
        self._stop_ids = tuple(stop_ids)
        self._settled = b""
        self._run = b""
        """Fallback bytes at the end, which the next one may spoil."""
        self._known: dict[bytes, tuple[int, ...] | None] = {}

    def write(self, token: int) -> None:
        """Takes note of a token that was drawn."""
        if token >= len(self._tokens.of_id):  # Models have ids beyond their tokenizer's.
            return
        own = self._tokens.of_id[token]
        if token in self._tokens.is_fallback:
            self._run += own
        else:
            self._settled += _decoded(self._run) + own
            self._run = b""

    def allowed(self) -> tuple[int, ...] | None:
        """Ids that may come next, ascending; None: any may.

        Any may, too, where what the field holds already is the beginning of no action: a token
        that ran from the key into the value was free.
        """
        _, key, behind = (self._settled + _decoded(self._run)).rpartition(_KEY)
        if not key:
            return None
        if behind not in self._known:
            self._known[behind] = tuple(sorted(set(self._next(behind)))) or None
        return self._known[behind]

    def _next(self, behind: bytes) -> Iterator[int]:
        match = _BEFORE_VALUE.fullmatch(behind)
        if match is None:
            return
        quoted: bytes | None = match["value"]
        if quoted is None:
            marks = (b'"', b' "') if behind.endswith(b":") else (b'"',)
            if match["colon"] is None:
                marks = (b':"', b': "')
            wanted = [mark + end for mark in marks for end in self._continuations(b"")]
        else:
            wanted = list(self._continuations(quoted[1:]))
            for name in self._names:
                rest = name.behind(quoted[1:])
                if rest is not None and _END.fullmatch(rest):
                    yield from self._ends(rest)
        for one in wanted:
            yield from self._tokens.leading_into(one, _END)

    def _continuations(self, value: bytes) -> Iterator[bytes]:
        for name in self._names:
            yield from name.continuations(value)

    def _ends(self, rest: bytes) -> Iterator[int]:
        """What may come after the name; no brace after the first."""
        yield from self._stop_ids
        for token, own in self._tokens.matching(_END):
            if _END.fullmatch(rest + own):
                yield token


def _decoded(run: bytes) -> bytes:
    """Fallback bytes as they will be read: none of them as it is, if they are no UTF-8."""
    try:
        run.decode("utf-8")
    except UnicodeDecodeError as error:
        is_unfinished = error.end == len(run) and error.reason == "unexpected end of data"
        return run if is_unfinished else REPLACEMENT.encode() * len(run)
    return run
