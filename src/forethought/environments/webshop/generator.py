"""A catalogue that is made up: the same for the same seed, on every machine."""

from functools import lru_cache
from random import Random

from forethought.environments.webshop.products import (
    SHUFFLE_SEED,
    Catalogue,
    Goal,
    Product,
    draw_cap,
    price_clause,
)
from forethought.environments.webshop.vocabulary import (
    ASKED,
    BULLETS,
    DESCRIPTIONS,
    FRAMES,
    OPTION_GROUPS,
    Kind,
    load_kinds,
)

FAMILY = 4
"""Near-duplicates: products of one brand and kind that differ in an attribute, the price or the
options."""
PRODUCTS_PER_KIND = 240
ATTRIBUTES = 5
"""Of a product."""
IN_TITLE = 4
"""Attributes that the title names; the others are in the bullets alone."""
VALUES = 5
"""Of an option, at most."""

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
    told = random.sample(attributes, ATTRIBUTES)
    rounded = round(round(price) - 0.01 if random.random() < 0.5 else price, 2)
    return Product(
        asin=asin,
        title=title,
        description=random.choice(DESCRIPTIONS).format(
            brand=brand, noun=kind.name, first=told[0], second=told[1]
        ),
        bullets=tuple(
            frame.format(one)
            for frame, one in zip(random.sample(BULLETS, len(BULLETS)), told, strict=True)
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
