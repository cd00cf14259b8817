"""The shop's pages: what each of them says, and where one gets to from it.

A page is a list of pieces of text, in the order in which the original's HTML has them. Both of
the text observations, the clicks that are possible, and the shop's HTML (`markup.py`) are read
off that list.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from forethought.environments.webshop.products import Catalogue, Goal, Product
from forethought.environments.webshop.search import SearchEngine

PER_PAGE = 10

SEARCH, BACK, NEXT, PREVIOUS, BUY = "Search", "Back to Search", "Next >", "< Prev", "Buy Now"
TABS = ("Description", "Features", "Reviews")

Name = Literal["search", "results", "item", "description", "features", "reviews", "done"]
Role = Literal["text", "button", "product", "option"]

_ACTION = re.compile(r"(.+)\[(.+)\]")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a shopper is, and what was chosen: the whole state of an episode."""

    name: Name = "search"
    keywords: str = ""
    """The last search, lower case."""
    page: int = 1
    """Of its results."""
    asin: str = ""
    """The product that is looked at."""
    chosen: tuple[tuple[str, str], ...] = ()
    """Options that were clicked: name and value, in the order of the first clicks."""
    visited: frozenset[str] = frozenset()
    """Products that were looked at since the search page."""


class Piece(NamedTuple):
    """A piece of a page's text."""

    text: str
    role: Role = "text"
    group: str = ""
    """The name of the option that this is a value of."""


@dataclass(frozen=True)
class Shop:
    """A catalogue with its search engine."""

    catalogue: Catalogue
    engine: SearchEngine
    per_page: int = PER_PAGE
    """Products on a page of results."""

    def hits(self, place: Place) -> tuple[str, ...]:
        """Products on the present page of results."""
        found = self.engine.search(place.keywords)
        return found[(place.page - 1) * self.per_page : place.page * self.per_page]

    def product(self, place: Place) -> Product:
        """The product that is looked at."""
        return self.catalogue.by_asin[place.asin]


def parse_action(text: str) -> tuple[str, str] | None:
    """Verb and lower-case argument of `search[…]` or `click[…]`; None: it is neither.

    As the original reads them: what follows the last bracket of the first line is passed over.
    """
    match = _ACTION.match(text)
    if match is None or match[1] not in ("search", "click"):
        return None
    return match[1], match[2].lower()


def follow(shop: Shop, place: Place, text: str, clicks: Sequence[str]) -> Place | None:
    """Where an action leads; None: it is not possible here, and nothing happens.

    Args:
        clicks: what can be clicked here (`clicks_of`).
    """
    action = parse_action(text)
    if action is None:
        return None
    verb, argument = action
    if verb == "search":
        return Place("results", keywords=argument, visited=place.visited)
    if argument not in clicks or argument == SEARCH.lower():
        return None
    return _clicked(shop, place, argument)


def _clicked(shop: Shop, place: Place, label: str) -> Place:
    # In the original's order: a product or an option that is called like a button is that button.
    if label == BUY.lower():
        return replace(place, name="done")
    if label == BACK.lower():
        return Place()
    if place.name == "results" and label in (NEXT.lower(), PREVIOUS.lower()):
        step = 1 if label == NEXT.lower() else -1
        return replace(place, page=place.page + step, asin="", chosen=())
    if label == PREVIOUS.lower():
        if place.name == "item":
            return replace(place, name="results", asin="", chosen=())
        return replace(place, name="item")
    if label in _TAB_NAMES:
        return replace(place, name=_TAB_NAMES[label])
    if place.name == "results":
        asin = label.upper()
        return replace(place, name="item", asin=asin, visited=place.visited | {asin})
    group = next(
        name.lower() for name, values in reversed(shop.product(place).options) if label in values
    )
    return replace(place, chosen=tuple({**dict(place.chosen), group: label}.items()))


_TAB_NAMES: dict[str, Name] = {
    "description": "description",
    "features": "features",
    "reviews": "reviews",
}


def pieces_of(shop: Shop, place: Place, goal: Goal, reward: float = 0.0) -> tuple[Piece, ...]:
    """All that a page says.

    Args:
        reward: what the purchase brought, for the last page.
    """
    if place.name == "done":
        return _done(place, reward)
    if place.name == "search":
        first = (Piece("WebShop"), Piece("Instruction: "), Piece(goal.instruction))
        return (*first, Piece(SEARCH, "button"))
    top = (Piece("Instruction:"), Piece(goal.instruction), Piece(BACK, "button"))
    if place.name == "results":
        return tuple(filter(_is_shown, (*top, *_results(shop, place))))
    return tuple(filter(_is_shown, (*top, Piece(PREVIOUS, "button"), *_of_product(shop, place))))


def clicks_of(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """What can be clicked on a page, lower case: buttons, products, options."""
    buttons = [piece.text.lower() for piece in pieces if piece.role in ("button", "product")]
    # Buttons come first: a results page has no options, an item page no products.
    return tuple(dict.fromkeys([*buttons, *(p.text for p in pieces if p.role == "option")]))


def as_text(pieces: Sequence[Piece]) -> str:
    """The observation `text`: all pieces, [SEP] between them."""
    return " [SEP] ".join(piece.text.strip() for piece in pieces)


def as_rich_text(pieces: Sequence[Piece], place: Place) -> str:
    """The observation `text_rich`: a line for each piece, what can be clicked marked, and what
    was clicked."""
    said, lines = "", ""
    # The original looks for a quoted value in the page's address.
    address = "+".join(place.keywords.split(" ")) + json.dumps(dict(place.chosen))
    for text, role, _ in pieces:
        if role == "button":
            line = f"[button] {text} [button_]"
        elif role == "option" and f'"{text}"' in address:
            line = f"  [clicked button] {text} [clicked button_]"
            said = f"You have clicked {text}.\n{said}"
        elif role == "option":
            line = f"  [button] {text} [button_]"
        elif role == "product":
            mark = "clicked button" if text in place.visited else "button"
            line = f"\n[{mark}] {text} [{mark}_]"
        else:
            line = text
        lines += line + "\n"
    return said + lines


def _results(shop: Shop, place: Place) -> list[Piece]:
    total = len(shop.engine.search(place.keywords))
    pieces = [Piece(f"Page {place.page} (Total results: {total})")]
    if place.page > 1:
        pieces.append(Piece(PREVIOUS, "button"))
    pieces.append(Piece(NEXT, "button"))
    for asin in shop.hits(place):
        product = shop.catalogue.by_asin[asin]
        pieces += [Piece(asin, "product"), Piece(product.title), Piece(product.price_tag)]
    return pieces


def _of_product(shop: Shop, place: Place) -> list[Piece]:
    product = shop.product(place)
    if place.name == "description":
        return [Piece(product.description)]
    if place.name == "features":
        return [Piece(f" {bullet}") for bullet in product.bullets]
    if place.name == "reviews":
        return []  # the original's files have none
    pieces: list[Piece] = []
    for name, values in product.options:
        pieces += [Piece(name), *(Piece(value, "option", name) for value in values)]
    told = (product.title, f"Price: {product.price_tag}", "Rating: N.A.")
    pieces += [Piece(text) for text in told]
    return [*pieces, *(Piece(tab, "button") for tab in TABS), Piece(BUY, "button")]


def _done(place: Place, reward: float) -> tuple[Piece, ...]:
    """The last page, with the fields that the original leaves empty."""
    options = json.dumps(dict(place.chosen), sort_keys=True)
    for mark in "<>&'":
        options = options.replace(mark, f"\\u{ord(mark):04x}")
    texts = (
        *("Thank you for shopping with us!", "Your code: ", "None"),
        *(" (Paste it in your MTurk interface.)", "Purchased", "asin", place.asin),
        *("options", options, "attrs", "None", "category", "None", "query", "None"),
        *("product category", "None", "Target", "asin", "options", "attrs", "price upper"),
        *("instuction text", "category", "product category", "query", "Goal ", "None", "Reward"),
        *("Your score (min 0.0, max 1.0)", str(reward), "Reward Details ", "None"),
    )
    return tuple(Piece(text) for text in texts)


def _is_shown(piece: Piece) -> bool:
    """Whether HTML shows it: an empty text is no text, and one of white space with a line break
    counts as the space between others."""
    return bool(piece.text) and (not piece.text.isspace() or "\n" not in piece.text)
