"""WebShop's prompt: the goal, and the page in few words.

    goal: find me machine washable curtains, in grey, and price lower than 50.00 dollars
    [back to search] [< prev]
    color: [black] [[grey]] [ivory]
    size: [42 x 84 inch] [52 x 96 inch]
    bunax light blocking curtains machine washable, soft material
    price: $31.99
    [description] [features] [reviews] [buy now]
    JSON: thoughts, action

What can be clicked is in brackets, what was clicked in double ones. It is read off the
observation; `view=text`, which marks neither, is written with bars between its pieces.
"""

import re
from dataclasses import dataclass

from forethought.configs.parts import ResponseFormat
from forethought.types import Message, Observation

_BUTTON = re.compile(r"\[button\] (.*) \[button_\]")
_CLICKED = re.compile(r"\[clicked button\] (.*) \[clicked button_\]")
_COUNT = re.compile(r"page (\d+) \(total results: (\d+)\)")
_LEFT_OUT = ("instruction:", "you have clicked ", "rating: n.a.")


@dataclass(frozen=True)
class WebShopPrompter:
    """Goal, page, and the form of the response."""

    response_format: ResponseFormat

    @property
    def response_fields(self) -> tuple[str, ...]:
        """The JSON fields that the prompt asks for, `action` last."""
        return ("thoughts", "action") if self.response_format == "thoughts" else ("action",)

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """One message of the user: goal and page."""
        form = "thoughts, action" if self.response_format == "thoughts" else "action"
        page = describe_page(observation.text or "", observation.goal)
        return (Message("user", f"goal: {observation.goal}\n{page}\nJSON: {form}"),)


def describe_page(text: str, goal: str) -> str:
    """An observation of either view, less the goal, in lower case."""
    text, goal = text.lower(), goal.lower()
    if " [sep] " in text:
        pieces = [piece for piece in text.split(" [sep] ") if piece != goal]
        return " | ".join(piece for piece in pieces if not piece.startswith("instruction:"))
    lines: list[str] = []
    in_product, after_blank = False, False
    for piece in text.replace(f"{goal}\n", "", 1).split("\n"):
        if not piece:
            after_blank = True
            continue
        if piece.startswith(_LEFT_OUT):
            continue
        is_value = piece.startswith("  [")  # of an option; what comes before the first is its name
        is_button = piece.startswith(("[button]", "[clicked button]"))
        said = _COUNT.sub(r"page \1 of \2 results", _CLICKED.sub(r"[[\1]]", piece))
        said = _BUTTON.sub(r"[\1]", said).strip()
        in_product = after_blank if is_button or is_value else in_product
        follows = is_value or (in_product and not is_button)
        follows = follows or (
            is_button and not after_blank and bool(lines) and lines[-1][-1] == "]"
        )
        if is_value and lines[-1][-1] != "]":
            said = f": {said}"
        elif follows:
            said = f" {said}"
        lines = [*lines[:-1], lines[-1] + said] if follows and lines else [*lines, said]
        after_blank = False
    return "\n".join(lines)
