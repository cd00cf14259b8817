"""The shop's pages: what each of them says, and where one gets to from it.

A page is a list of pieces of text, in the order in which the original's HTML has them. Both of
the text observations, the clicks that are possible, and the shop's HTML (`markup.py`) are read
off that list.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, NamedTuple

import bm25s
import numpy as np
import Stemmer

from forethought.environments.webshop.products import Catalogue, Goal, Product

HITS = 50
K1, B = 0.9, 0.4
"""Pyserini's defaults, which the original runs with."""
MAX_QUERY = 1000
"""Characters of a query that are looked at; the rest is passed over."""
CACHE = 1 << 16
"""Queries whose results are kept."""

_COMMON = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
_STOP_WORDS = frozenset(_COMMON.split())
"""Lucene's, in English."""
_WORD = re.compile(r"\w+(?:['’.]\w+)*")


class SearchEngine:
    """Products by what is typed."""

    def __init__(self, products: Sequence[Product]) -> None:
        self._stemmer = Stemmer.Stemmer("porter")
        self._stems: dict[str, str] = {}
        documents = [self._words(_text_of(product)) for product in products]
        vocabulary = {word: n for n, word in enumerate(dict.fromkeys(chain(*documents)))}
        self._asins = [product.asin for product in products]
        self._vocabulary = vocabulary
        self._index = bm25s.BM25(method="lucene", k1=K1, b=B)
        ids = [[vocabulary[word] for word in words] for words in documents]
        if vocabulary:  # bm25s cannot index nothing
            self._index.index((ids, vocabulary), show_progress=False)
        self._known: dict[str, tuple[str, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no product has a word, so that nothing is ever found."""
        return not self._vocabulary

    def search(self, query: str) -> tuple[str, ...]:
        """Codes of at most 50 products that share a word with the query, best first, equally good
        ones in the order of the catalogue."""
        query = query[:MAX_QUERY]
        if query not in self._known:
            if len(self._known) >= CACHE:
                self._known.clear()
            self._known[query] = self._search(query)
        return self._known[query]

    def _search(self, query: str) -> tuple[str, ...]:
        words = [word for word in self._words(query) if word in self._vocabulary]
        if not words:
            return ()
        scores = self._index.get_scores(words)
        best = len(scores) - min(HITS, len(scores))
        least = np.partition(scores, best)[best]
        found = np.flatnonzero((scores >= least) & (scores > 0))
        order = np.lexsort((found, -scores[found]))[:HITS]
        return tuple(self._asins[number] for number in found[order])

    def _words(self, text: str) -> list[str]:
        """Stems of a text's words, stop words left out; none is the empty text."""
        stems: list[str] = []
        for word in _WORD.findall(text.lower()):
            if word in _STOP_WORDS:
                continue
            stem = self._stems.get(word)
            if stem is None:
                own = word.removesuffix("'s")
                # The stemmer leaves nothing of "s", where Lucene's leaves it alone; and bm25s adds
                # the empty text to the vocabulary, with a number beyond its index.
                stem = self._stems[word] = self._stemmer.stemWord(own) or own
            stems.append(stem)
        return stems


def _text_of(product: Product) -> str:
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in product.options)
    bullet = product.bullets[0] if product.bullets else ""
    return f"{product.title} {product.description} {bullet} {options}"


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
    """Page of its results, from 1."""
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

    def listed(self, place: Place, label: str) -> str | None:
        """Code of the product on the present page of results that is called so, in any case."""
        label = label.lower()
        return next((asin for asin in self.hits(place) if asin.lower() == label), None)

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
    # In the original's order: an option that is called like a button of its page is that button.
    if label == BACK.lower():
        return Place()
    if place.name == "results":
        if label in (NEXT.lower(), PREVIOUS.lower()):
            step = 1 if label == NEXT.lower() else -1
            return replace(place, page=place.page + step, asin="", chosen=())
        asin = shop.listed(place, label)
        assert asin is not None, "what can be clicked on a page of results is a button or a product"
        return replace(place, name="item", asin=asin, visited=place.visited | {asin})
    if label == BUY.lower():
        return replace(place, name="done")
    if label == PREVIOUS.lower():
        if place.name == "item":
            return replace(place, name="results", asin="", chosen=())
        return replace(place, name="item")
    if label in _TAB_NAMES:
        return replace(place, name=_TAB_NAMES[label])
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
    lines = (product.title, f"Price: {product.price_tag}", "Rating: N.A.")
    pieces += [Piece(text) for text in lines]
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
