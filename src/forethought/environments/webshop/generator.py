"""A catalogue that is made up: the same for the same seed, on every machine."""

from functools import cache, lru_cache
from importlib.resources import files
from random import Random
from typing import NamedTuple

from forethought.environments.webshop.products import (
    SHUFFLE_SEED,
    Catalogue,
    Goal,
    Product,
    draw_cap,
    price_clause,
)

_COLORS = (
    "black white navy red grey green beige brown pink purple orange yellow teal burgundy khaki "
    "ivory silver gold turquoise lavender charcoal olive"
)
_SCENTS = "lavender vanilla citrus rose mint jasmine sandalwood cucumber ocean"
_FLAVORS = "original vanilla peanut cinnamon honey lemon mint coconut caramel garlic berry"

OPTION_GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "color": ("color", tuple(_COLORS.split())),
    "size": ("size", ("x-small", "small", "medium", "large", "x-large", "xx-large", "3x-large")),
    "shoe": ("size", ("6", "6.5", "7", "7.5", "8", "8.5", "9", "9.5", "10", "11")),
    "scent": ("scent", tuple(_SCENTS.split())),
    "flavor": ("flavor name", tuple(_FLAVORS.split())),
    "volume": (
        "size",
        ("2 fl oz", "4 fl oz", "8 fl oz", "12 fl oz", "16 fl oz", "24 fl oz", "32 fl oz"),
    ),
    "weight": ("size", ("4 ounce", "8 ounce", "12 ounce", "1 pound", "2 pound", "5 pound")),
    "pack": ("size", ("pack of 1", "pack of 2", "pack of 3", "pack of 4", "pack of 6")),
    "count": ("item count", ("1 count", "2 count", "4 count", "6 count", "8 count", "12 count")),
    "style": ("style", ("classic", "modern", "compact", "deluxe", "sport", "vintage")),
    "model": ("style", ("iphone 11", "iphone 12", "iphone 13", "galaxy s21", "pixel 6")),
    "length": ("size", ("1 ft", "3 ft", "6 ft", "10 ft", "15 ft")),
    "capacity": ("size", ("5000 mah", "10000 mah", "20000 mah", "30000 mah")),
    "seats": ("size", ("loveseat", "three seat", "four seat", "sectional")),
    "rug": ("size", ("2 x 3 ft", "4 x 6 ft", "5 x 7 ft", "8 x 10 ft")),
    "bed": ("size", ("twin", "full", "queen", "king")),
    "panel": ("size", ("42 x 63 inch", "42 x 84 inch", "52 x 84 inch", "52 x 96 inch")),
    "inches": ("size", ("8 inch", "10 inch", "12 inch", "14 inch")),
}
"""Name of an option as the page shows it, and its values; a value is in one group of a product."""

ASKED: dict[str, tuple[str, ...]] = {
    "color": ("in {}", "the color should be {}", "in the color {}"),
    "size": ("in size {}", "the size should be {}", "size {}"),
    "scent": ("with {} scent", "{} scented", "the scent should be {}"),
    "flavor name": ("{} flavored", "with {} flavor", "the flavor should be {}"),
    "item count": ("with {}", "i want {}", "it should be {}"),
    "style": ("in {} style", "the style should be {}", "for {}"),
}
"""How a shopper asks for an option."""

FRAMES = (
    "i need {noun} that is {all}{options}",
    "i'm looking for {first} {noun}{rest}{options}",
    "find me {all} {noun}{options}",
    "i want {first} {noun}{rest}{options}",
    "i would like to buy {noun} with {all}{options}",
    "can you find {noun} which is {all}{options}",
    "looking for {all} {noun}{options}",
    "please show me {first} {noun}{rest}{options}",
    "i am interested in {noun} featuring {all}{options}",
    "get me {noun}. it must be {all}{options}",
    "i'd like {all} {noun}{options}",
    "my sister asked for {noun}, {all}{options}",
)
"""Ways to ask: `all` attributes, or the `first` before the noun and the `rest` after it."""

BULLETS = (
    "{}: made for everyday use",
    "Designed to be {}",
    "{} for your comfort",
    "You will notice that it is {}",
    "Our customers like it for being {}",
)

DESCRIPTIONS = (
    "The {brand} {noun} is {first} and {second}. Contact us with any question.",
    "{brand} makes this {noun} for people who ask for {first}. It is {second}, too.",
    "A {noun} by {brand}: {first}, {second}, and checked before it is sent.",
)


class Kind(NamedTuple):
    """A kind of product."""

    name: str
    """ "dress shirt": what shoppers type, the product's `query`."""
    category: str
    path: str
    """ "Clothing, Shoes & Jewelry › Men › Clothing › Shirts"."""
    option_groups: tuple[str, ...]
    prices: tuple[float, float]
    attributes: tuple[str, ...]


@cache
def load_kinds() -> tuple[Kind, ...]:
    """All kinds, in the order of the file."""
    text = (files("forethought.environments.webshop") / "kinds.txt").read_text(encoding="utf-8")
    kinds: list[Kind] = []
    category = department = ""
    for line in text.splitlines():
        if line.startswith("["):
            category, _, department = line[1:].partition("] ")
        elif line and not line.startswith("#"):
            name, path, groups, prices, attributes = line.split(" | ")
            low, high = map(float, prices.split())
            kinds.append(
                Kind(
                    name=name,
                    category=category,
                    path=f"{department} › {path}",
                    option_groups=tuple(groups.split()),
                    prices=(low, high),
                    attributes=tuple(attributes.split(", ")),
                )
            )
    return tuple(kinds)


FAMILY = 4
"""Near-duplicates: products of one brand and kind that differ in an attribute, the price or the
options."""
PRODUCTS_PER_KIND = 240
ATTRIBUTES = 5
"""Attributes of a product."""
IN_TITLE = 4
"""Attributes that the title names; the others are in the bullets alone."""
VALUES = 5
"""Values of an option, at most."""

_CONSONANTS = "BDFGKLMNPRSTVZ"
_VOWELS = "AEIOU"


@lru_cache(maxsize=2)
def generate_catalogue(seed: int) -> Catalogue:
    """12,000 products of 50 kinds in 5 categories, and a goal for each of them.

    No two goals have the same instruction, and none have the same product, so the splits share
    neither.
    """
    random = Random(f"webshop {seed}")
    codes = _codes(random)
    products: list[Product] = []
    for kind in load_kinds():
        for _ in range(PRODUCTS_PER_KIND // FAMILY):
            products += _family(kind, codes, random)
    goals: list[Goal] = []
    said: set[str] = set()
    kinds = {kind.name: kind for kind in load_kinds()}
    for product in products:
        goal = _goal(product, kinds[product.query], random)
        while goal.instruction in said:
            goal = _goal(product, kinds[product.query], random)
        said.add(goal.instruction)
        goals.append(goal)
    Random(SHUFFLE_SEED).shuffle(goals)
    return Catalogue(
        products=tuple(products),
        by_asin={product.asin: product for product in products},
        goals=tuple(goals),
        label="generated",
    )


def _codes(random: Random) -> list[str]:
    """Different product codes, as long as real ones: "B0" and four syllables."""
    syllables = [c + v for c in _CONSONANTS for v in _VOWELS]
    total = PRODUCTS_PER_KIND * len(load_kinds())
    numbers = random.sample(range(len(syllables) ** 4), total)
    return ["B0" + "".join(syllables[n // 70**place % 70] for place in range(4)) for n in numbers]


def _family(kind: Kind, codes: list[str], random: Random) -> list[Product]:
    brand = _brand(random)
    attributes = random.sample(kind.attributes, ATTRIBUTES)
    options = _options(kind, random)
    price = random.uniform(*kind.prices)
    members: list[Product] = []
    for member in range(FAMILY):
        own, chosen, cost = list(attributes), options, price
        if member == 1:  # another attribute
            others = [one for one in kind.attributes if one not in attributes]
            own[random.randrange(ATTRIBUTES)] = random.choice(others)
        elif member == 2:  # the same, dearer
            cost = price * random.uniform(1.4, 2.2)
        elif member == 3:  # other options
            chosen = _options(kind, random)
        members.append(_product(codes.pop(), kind, brand, own, chosen, cost, random))
    return members


def _product(
    asin: str,
    kind: Kind,
    brand: str,
    attributes: list[str],
    options: tuple[tuple[str, tuple[str, ...]], ...],
    price: float,
    random: Random,
) -> Product:
    shown = [_titled(one) for one in random.sample(attributes[:IN_TITLE], IN_TITLE)]
    noun = _titled(kind.name)
    title = random.choice(
        (
            f"{brand} {noun} {', '.join(shown)}",
            f"{brand} {shown[0]} {noun} {', '.join(shown[1:])}",
            f"{brand} {shown[0]} {shown[1]} {noun} {', '.join(shown[2:])}",
        )
    )
    named = random.sample(attributes, ATTRIBUTES)
    rounded = round(round(price) - 0.01 if random.random() < 0.5 else price, 2)
    return Product(
        asin=asin,
        title=title,
        description=random.choice(DESCRIPTIONS).format(
            brand=brand, noun=kind.name, first=named[0], second=named[1]
        ),
        bullets=tuple(
            frame.format(one)
            for frame, one in zip(random.sample(BULLETS, len(BULLETS)), named, strict=True)
        ),
        attributes=tuple(attributes),
        options=options,
        price=rounded,
        price_tag=f"${rounded}",
        category=kind.category,
        query=kind.name,
        path=kind.path,
    )


def _goal(product: Product, kind: Kind, random: Random) -> Goal:
    wanted = random.randint(1, 3)
    visible = product.attributes[:IN_TITLE]
    attributes = random.sample(visible, wanted)
    if random.random() < 0.2:  # one that the title does not name
        attributes[-1] = product.attributes[IN_TITLE]
    options = [
        (name, random.choice(values)) for name, values in product.options if random.random() < 0.75
    ]
    frame = random.choice(FRAMES)
    first, *rest = attributes
    asked = frame.format(
        noun=kind.name,
        all=" and ".join([", ".join(attributes[:-1]), attributes[-1]] if rest else attributes),
        first=first,
        rest="".join(f" with {one}" if n == 0 else f" and {one}" for n, one in enumerate(rest)),
        options="".join(", " + random.choice(ASKED[name]).format(value) for name, value in options),
    )
    cap = draw_cap(product.price, random)
    return Goal(
        asin=product.asin,
        instruction=asked + price_clause(cap),
        attributes=tuple(attributes),
        options=tuple(value for _, value in options),
        price_cap=cap,
        title=product.title,
        category=product.category,
        query=product.query,
        path=product.path,
    )


def _options(kind: Kind, random: Random) -> tuple[tuple[str, tuple[str, ...]], ...]:
    options: list[tuple[str, tuple[str, ...]]] = []
    for group in kind.option_groups:
        name, values = OPTION_GROUPS[group]
        count = min(random.randint(3, VALUES), len(values))
        numbers = sorted(random.sample(range(len(values)), count))
        options.append((name, tuple(values[number] for number in numbers)))
    return tuple(options)


def _brand(random: Random) -> str:
    letters = "".join(random.choice(_CONSONANTS) + random.choice(_VOWELS) for _ in range(2))
    return (letters + random.choice(("", "N", "R", "X"))).capitalize()


def _titled(words: str) -> str:
    return " ".join(word.capitalize() for word in words.split())
