"""Prompts of the card games.

Two wordings of the same task. `paper` is RL4VLM's (appendices B and D); `short` says the
same in a quarter of the tokens, which is what a model trained from scratch pays for.
"""

from dataclasses import dataclass
from typing import NamedTuple

from forethought.configs.parts import ResponseFormat
from forethought.environments.contract import Wording
from forethought.types import Message, Observation


class _Text(NamedTuple):
    """`{formula}` and `{actions}` are filled in; the last field is the action."""

    task: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class CardsPrompter:
    """Image, task, present formula where there is one, and the form of the response."""

    game: str
    actions: tuple[str, ...]
    response_format: ResponseFormat
    wording: Wording

    @property
    def response_fields(self) -> tuple[str, ...]:
        """The JSON fields that the prompt asks for, `action` last."""
        return tuple(field.split('"')[1] for field in self._fields)

    @property
    def _text(self) -> _Text:
        return (_PAPER if self.wording == "paper" else _SHORT)[self.game]

    @property
    def _fields(self) -> tuple[str, ...]:
        fields = self._text.fields
        return fields if self.response_format == "thoughts" else fields[-1:]

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """One message of the user: image, task and form of the response."""
        text, fields = self._text, self._fields
        whole = text.task + "\n{\n" + ",\n".join(fields) + "\n}"
        choices = ", ".join(f"'{action}'" for action in self.actions)
        formula = observation.text or ""
        filled = whole.replace("{formula}", formula).replace("{actions}", choices)
        return (Message("user", filled, observation.image),)


_SHORT = {
    "NumberLine": _Text(
        "Move the current number to the target number.",
        ('"current number"', '"target number"', '"thoughts"', '"action": "-" or "+"'),
    ),
    "EZPoints": _Text(
        "Use both cards to make 12. Formula: '{formula}'",
        ('"cards"', '"formula"', '"thoughts"', '"action"'),
    ),
    "Points24": _Text(
        "Use all four cards to make 24. Formula: '{formula}'",
        ('"cards"', '"formula"', '"thoughts"', '"action"'),
    ),
    "Blackjack": _Text(
        "Play blackjack.",
        ('"thoughts"', '"action": "stand" or "hit"'),
    ),
}

_JSON = " Your response should be a valid json file in the following format:"
_POINTS_THOUGHTS = (
    "\"thoughts\": {First check whether the current formula 'z' %s. If the current formula %s, "
    "output '='. Otherwise consider which number or operator should be appended to the current "
    "formula to make it equal %s.}"
)

_PAPER = {
    "NumberLine": _Text(
        "You are playing a game called number line. You will see a target number and a current "
        "number in the image. And your goal is to move the current number closer to the target "
        "by choosing either adding or subtracting one to the current number." + _JSON,
        (
            '"current number": "x"',
            '"target number": "x"',
            '"thoughts": {first read out the current and target number, then think carefully '
            "about which action to choose}",
            '"action": "-" or "+"',
        ),
    ),
    "EZPoints": _Text(
        "You are an expert card game player. You are observing two cards in the image. You are "
        "observing the current formula: '{formula}'. You can choose between [{actions}]. The "
        "number or operator you choose will be appended to the current formula. Note that 'J', "
        "'Q', and 'K' count as '10'. Your goal is to output a formula that evaluates to 12, and "
        "each number can only be used once." + _JSON,
        (
            '"cards": [x, y]',
            "\"formula\": '{formula}'",
            _POINTS_THOUGHTS % ("is complete", "'z' is complete", "12"),
            '"action": "{number}" or "{operator}"',
        ),
    ),
    "Points24": _Text(
        "You are an expert 24 points card game player. You are observing these four cards in the "
        "image. You are observing the current formula: '{formula}'. You can choose between "
        "[{actions}]. The number or operator you choose will be appended to the current formula. "
        "Note that 'J', 'Q', and 'K' count as '10'. Your goal is to output a formula that "
        "evaluates to 24, and each number can only be used once." + _JSON,
        (
            '"cards": [x, y, z, w]',
            "\"formula\": '{formula}'",
            _POINTS_THOUGHTS % ("equals 24", "equals 24", "24"),
            '"action": "{number}" or "{operator}"',
        ),
    ),
    "Blackjack": _Text(
        "You are a blackjack player. You are observing the current game state, you can choose "
        "between ['stand', 'hit']." + _JSON,
        (
            '"thoughts": "{first describe your total points and the dealer\'s total points then '
            'think about which action to choose}"',
            '"action": "stand" or "hit"',
        ),
    ),
}
