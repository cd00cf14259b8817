"""The reward of a purchase in WebShop, between 0 and 1.

        r = r_type · (attributes matched + options matched + [price ≤ cap])
                     / (attributes asked + options asked + 1)

Yao et al. 2022, Eq. 2; the details are those of the public repository (`web_agent_site`).
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from thefuzz.fuzz import token_set_ratio

from forethought.environments.webshop.products import Goal, GoalOption, Product

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

_OTHERS = (
    # function words
    "a an the this that these those and or but nor of for with without in on at by to from into "
    "onto over under per via as is are was were be been am it its you your yours we our us he she "
    "his her him they them their i me my if than then so not no nor all any each every both more "
    "most less least some such very too also just only can will may might must should would could "
    "do does did has have had who which what when where while how up out about between after "
    "before during "
    # adjectives and adverbs that are adjectives in titles, too
    "modern new natural black easy adjustable portable perfect great good best long short thick "
    "thin soft durable comfortable breathable lightweight waterproof reusable removable flexible "
    "compatible suitable available different various large small big wide narrow multi mini dry "
    "wet clean safe strong high low full extra other first second one two three four five six "
    "seven eight nine ten upholstered listed "
    # verbs of titles
    "made fits makes keeps includes get make keep use using"
)
_NOT_NOUNS = frozenset(_OTHERS.split())


@lru_cache(maxsize=1 << 14)
def nouns(title: str) -> tuple[str, ...]:
    """The nouns and proper nouns of a title, lower case, in order; repeated where it repeats."""
    words = (word.lower() for word in _WORD.findall(title))
    return tuple(word for word in words if word not in _NOT_NOUNS and any(map(str.isalpha, word)))


ALIKE = 85
"""Two phrases match if their token-set ratio is above this."""

_COLOR_NAMES = (
    "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown "
    "burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee "
    "cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso fuchsia "
    "gold granite grape graphite grass gray green grey heather indigo ivory ivy khaki lavender "
    "lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor "
    "mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red "
    "rose royal rust sand sapphire seashell silver skull slate steel stone stonewash sunflower "
    "tan taupe teal tiger turquoise violet walnut wheat white wine yellow"
)
_COLORS = tuple(_COLOR_NAMES.split())


class Reward(NamedTuple):
    """A purchase's reward, and its parts."""

    total: float
    type_factor: float
    """r_type: 1, 0.5, 0.1 or 0."""
    attributes: float
    """Share of the goal's attributes that the product has."""
    options: float
    """Share of the goal's options that were chosen; 1 where it asks for none."""
    price: bool
    """Whether the price is within the cap."""


def reward_of(product: Product, chosen: Iterable[str], goal: Goal) -> Reward:
    """What buying a product brings.

    Args:
        chosen: the values of the options that were clicked.
    """
    attributes = sum(has_attribute(product, attribute) for attribute in goal.attributes)
    values = tuple(chosen)
    options = sum(any(is_option(value, wanted) for value in values) for wanted in goal.options)
    price = product.price <= goal.price_cap
    asked = len(goal.attributes) + len(goal.options) + 1
    factor = type_factor(product, goal)
    return Reward(
        total=(attributes + options + price) / asked * factor,
        type_factor=factor,
        attributes=attributes / len(goal.attributes),
        options=options / len(goal.options) if goal.options else 1.0,
        price=price,
    )


def type_factor(product: Product, goal: Goal) -> float:
    """How far the product is of the kind that was asked for: r_type.

    1 if the queries are equal, two parts of the category paths are shared, or the title score is
    above 0.2; else 0.5. Then 0.1 if the title score is below 0.1, and 0 if it is 0.
    """
    score = title_score(product.title, goal.title)
    if score == 0:
        return 0.0
    if score < 0.1:
        return 0.1
    shared = _parts(product.path) & _parts(goal.path)
    alike = product.query == goal.query or len(shared) >= 2 or score > 0.2
    return 1.0 if alike else 0.5


def title_score(title: str, wanted: str) -> float:
    """Share of the wanted title's nouns that the title has; 0.2 where it has none."""
    asked = nouns(wanted)
    return len(set(nouns(title)) & set(asked)) / len(asked) if asked else 0.2


def has_attribute(product: Product, attribute: str) -> bool:
    """Whether one of the product's attributes is like this one, or its texts contain it."""
    return any(token_set_ratio(own, attribute) > ALIKE for own in product.attributes) or any(
        attribute in text.lower()
        for text in (product.title, " ".join(product.bullets), product.description)
    )


def is_option(value: str, wanted: GoalOption) -> bool:
    """Whether a chosen value is what a goal asks for."""
    return _ratio(_simple(value), _simple(wanted)) > ALIKE


@lru_cache(maxsize=1 << 14)
def _ratio(a: str, b: str) -> int:
    return token_set_ratio(a, b)


def _simple(option: GoalOption) -> str:
    """The first color of the list that an option contains, or the option itself.

    A synthetic goal's option is a pair of name and value: the original looks for a color among
    its two elements, not inside of them, and compares the pair as Python writes it.
    """
    return next((color for color in _COLORS if color in option), str(option))


def _parts(path: str) -> set[str]:
    return {part.strip() for part in path.split("›")}
