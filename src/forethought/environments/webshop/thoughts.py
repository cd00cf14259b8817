"""What thoughts claim in WebShop, in the words of its expert, beside what page and goal say."""

import re
from collections.abc import Iterator, Sequence

from forethought.environments.parts import read_field
from forethought.environments.webshop.pages import Place, Shop
from forethought.environments.webshop.products import NO_CAP, Goal
from forethought.environments.webshop.reward import is_option
from forethought.environments.webshop.shoppers import BUY_IT, matching_values
from forethought.types import Claim, ThoughtFacts

_LOOK_FOR = re.compile(r"I look for (.+)")
_PRODUCT = re.compile(
    r"(\w+) is (.+) for (\$[\d.]+(?: to \$[\d.]+)?)(?:, below (\d+))?$", re.IGNORECASE
)
_NOT_CHOSEN = re.compile(r"(.+) is asked for and not chosen")
_COMPLETE = re.compile(r"(?:(.+) chosen, nothing is missing|nothing to choose)")
_CLICKS = (
    (re.compile(r"another search is better"), "click[back to search]"),
    (re.compile(r"it must be further down"), "click[next >]"),
    (
        re.compile(r"it must be further up|back to the product|\w+ is not the best one"),
        "click[< prev]",
    ),
    (_COMPLETE, BUY_IT),
)


def webshop_facts(response: str, *, shop: Shop, place: Place, goal: Goal) -> ThoughtFacts:
    """Kind, attributes and price of the product that is chosen, what the goal asks for, which
    options are chosen; whether a price is within the cap, and what is missing.

    Args:
        place: where the shopper is.
    """
    thoughts = (read_field(response, "thoughts") or "").strip()
    return ThoughtFacts(
        perceived=(*_of_product(thoughts, shop, place, goal), *_of_options(thoughts, place, goal)),
        inferred=(*_within_cap(thoughts), *_missing(thoughts, shop, place, goal)),
        concluded_actions=tuple(_conclusions(thoughts)),
    )


def _of_product(thoughts: str, shop: Shop, place: Place, goal: Goal) -> Iterator[Claim]:
    found = _PRODUCT.match(thoughts)
    if found is None:
        return
    code, said, price, cap = found.groups()
    asin = shop.listed(place, code) if place.name == "results" else None
    yield Claim(f"{code} on the page", "yes", _word(asin is not None))
    if asin is not None:
        product = shop.catalogue.by_asin[asin]
        kind, *attributes = said.split(" and ")
        yield Claim(f"kind of {code}", kind, product.query)
        for attribute in attributes:
            is_there = attribute in product.title.lower()
            yield Claim(f"{attribute} in the title of {code}", "yes", _word(is_there))
        yield Claim(f"price of {code}", price, product.price_tag)
    if cap is not None:
        true = "none" if goal.price_cap == NO_CAP else f"{goal.price_cap:.0f}"
        yield Claim("price cap", cap, true)


def _of_options(thoughts: str, place: Place, goal: Goal) -> Iterator[Claim]:
    values = [value for _, value in place.chosen]
    if found := _NOT_CHOSEN.match(thoughts):
        value = found[1]
        is_asked_for = any(is_option(value, wanted) for wanted in goal.options)
        yield Claim(f"{value} asked for", "yes", _word(is_asked_for))
        yield Claim(f"{value} chosen", "no", _word(value in values))
    if (found := _COMPLETE.match(thoughts)) and found[1]:
        is_so = sorted(found[1].split(", ")) == sorted(", ".join(values).split(", "))
        yield Claim("chosen", found[1], found[1] if is_so else _listed(values))


def _within_cap(thoughts: str) -> Iterator[Claim]:
    found = _PRODUCT.match(thoughts)
    if found and found[4]:
        lowest = re.match(r"\$(\d+(?:\.\d+)?)(?: to |$)", found[3])  # "$31.5.2" is no price
        is_below = lowest is not None and float(lowest[1]) <= float(found[4])
        yield Claim(f"{found[3]} below {found[4]}", "yes", _word(is_below))


def _missing(thoughts: str, shop: Shop, place: Place, goal: Goal) -> Iterator[Claim]:
    if _COMPLETE.match(thoughts):
        asked_for = matching_values(shop.product(place), goal) if place.name == "item" else ()
        values = {value for _, value in place.chosen}
        yield Claim("missing", "nothing", _listed([v for v in asked_for if v not in values]))


def _conclusions(thoughts: str) -> Iterator[str]:
    if found := _LOOK_FOR.match(thoughts):
        yield f"search[{found[1]}]"
    if found := _PRODUCT.match(thoughts):
        yield f"click[{found[1].lower()}]"
    if found := _NOT_CHOSEN.match(thoughts):
        yield f"click[{found[1]}]"
    yield from (action for words, action in _CLICKS if words.match(thoughts))


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) or "nothing"


def _word(is_so: bool) -> str:
    return "yes" if is_so else "no"
