"""Reads the original's product and goal files.

What the original reads is read, and means the same. What it would fail on, while it reads or at a
purchase, is refused here at once: a wrong type is an error of `entries.py`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product as combinations
from pathlib import Path
from random import Random
from typing import Literal, cast

from forethought.environments.webshop.entries import Entry, read_json
from forethought.environments.webshop.products import (
    SHUFFLE_SEED,
    Catalogue,
    Goal,
    GoalOption,
    Product,
    draw_cap,
    price_clause,
)
from forethought.errors import ConfigError, StorageError

GoalSource = Literal["human", "synthetic"]

_PAIRS = (
    ("items_shuffle.json", "items_ins_v2.json"),
    ("items_shuffle_1000.json", "items_ins_v2_1000.json"),
)
_HUMAN = "items_human_ins.json"
NO_PRICE = 100.0
"""Price of products without one, as in the original."""


@lru_cache(maxsize=2)
def read_catalogue(folder: str, source: GoalSource) -> Catalogue:
    """Products and goals of a folder.

    What the original draws without a seed, prices within a range and price caps, is drawn here
    with one: prices from the product's code, caps in the order of the goals.

    Raises:
        ConfigError: the folder, or a file that it must hold, is not there.
        StorageError: a file is cut short, or holds something else than products or goals.
    """
    where = Path(folder)
    found = next((pair for pair in _PAIRS if (where / pair[0]).is_file()), None)
    if found is None:
        raise ConfigError(
            f"data is {folder!r} — expected a folder with {_PAIRS[0][0]} or {_PAIRS[1][0]}"
        )
    attributes = read_json(where / found[1])
    products = tuple(_products(where / found[0], attributes))
    by_asin = {product.asin: product for product in products}
    asked = attributes
    if source == "human":
        asked = read_json(where / _HUMAN)
        goals = list(_human_goals(products, asked))
    else:
        goals = list(_synthetic_goals(products, asked))
    missing = sum(_count(item.value) for item in asked.fields() if item.name not in by_asin)
    if not goals:
        raise StorageError(
            f"{folder}: no {source} goal belongs to one of the {len(products)} products "
            f"({missing} goals are for others) — the goal file must be of the same products"
        )
    Random(SHUFFLE_SEED).shuffle(goals)
    return Catalogue(products, by_asin, tuple(goals), "official", missing)


def _count(asked: object) -> int:
    """Goals for a product that is not there: the original passes over whatever is said of it."""
    if isinstance(asked, dict):
        return "instruction" in asked
    return len(cast(list[object], asked)) if isinstance(asked, list) else 0


def _products(path: Path, attributes: Entry) -> Iterator[Product]:
    seen: set[str] = set()
    for item in read_json(path).members("product", "a list of products"):
        asin = item.field("asin").text()
        if asin == "nan" or len(asin) > 10 or asin in seen:
            continue
        seen.add(asin)
        yield _product(item._replace(name=f"{item.name} ({asin})"), asin, attributes.get(asin))


def _product(item: Entry, asin: str, about: Entry | None) -> Product:
    prices = _prices(item.get("pricing"))
    if len(prices) > 1:
        price = Random(f"price of {asin}").uniform(prices[0], prices[1])
        tag = f"${prices[0]} to ${prices[1]}"
    else:
        price = prices[0] if prices else NO_PRICE
        tag = f"${price}"
    bullets = item.field("small_description")
    attributes = about.get("attributes") if about is not None else None
    return Product(
        asin=asin,
        title=item.field("name").text(),
        description=item.field("full_description").text_or_empty(),
        bullets=bullets.texts() if isinstance(bullets.value, list) else (bullets.text_or_empty(),),
        attributes=("DUMMY_ATTR",) if attributes is None else attributes.texts(),
        options=_options(item.get("customization_options")),
        price=price,
        price_tag=tag,
        category=item.field("category").text_or_empty(),
        query=item.field("query").text().lower().strip(),
        path=item.field("product_category").text(),
    )


def _prices(pricing: Entry | None) -> tuple[float, ...]:
    if pricing is None or not pricing.value:
        return ()
    try:
        parts = pricing.text().split("$")[1:]
        return tuple(float(re.sub(r"[^\d.]", "", part)) for part in parts)
    except ValueError:
        raise pricing.refused("a price or two, each a number after a $") from None


def _options(groups: Entry | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if groups is None or not groups.value:
        return ()
    options = {
        group.name.lower(): tuple(
            value.field("value").text().strip().replace("/", " | ").lower()
            for value in group.members("value", "a list of values, or null")
        )
        for group in groups.fields()
        if group.value is not None
    }
    return tuple(options.items())


def _human_goals(products: tuple[Product, ...], asked: Entry) -> Iterator[Goal]:
    random = Random(f"caps {SHUFFLE_SEED}")
    for product in products:
        own = asked.get(product.asin)
        for item in own.members("goal", "a list of goals") if own is not None else ():
            wanted = item.field("instruction_attributes").texts()
            if wanted:
                text = item.field("instruction").text().strip(".")
                options = _wanted_options(item.field("instruction_options"))
                yield _goal(product, text, wanted, options, random)


def _wanted_options(options: Entry) -> tuple[GoalOption, ...]:
    if isinstance(options.value, dict):
        return tuple((option.name, option.text()) for option in options.fields())
    return options.texts()


def _synthetic_goals(products: tuple[Product, ...], attributes: Entry) -> Iterator[Goal]:
    """One goal for each combination of a product's options."""
    random = Random(f"caps {SHUFFLE_SEED}")
    for product in products:
        item = attributes.get(product.asin)
        instruction = item.get("instruction") if item is not None else None
        if item is None or instruction is None or instruction.value is None:
            continue
        listed = item.field("instruction_attributes")
        wanted = listed.texts()
        if not wanted:  # the reward divides by their number
            raise listed.refused("one attribute or more, where there is an instruction")
        groups = sorted(product.options)
        cap = draw_cap(product.price, random)
        for values in combinations(*(values for _, values in groups)):
            pairs = [(name, value) for (name, _), value in zip(groups, values, strict=True)]
            said = ", and ".join(f"{name}: {value}" for name, value in pairs)
            text = instruction.text() + (f" with {said}" if said else "")
            yield _goal(product, text, wanted, tuple(pairs), random, cap)


def _goal(
    product: Product,
    text: str,
    attributes: tuple[str, ...],
    options: tuple[GoalOption, ...],
    random: Random,
    cap: float | None = None,
) -> Goal:
    cap = draw_cap(product.price, random) if cap is None else cap
    return Goal(
        asin=product.asin,
        instruction=text + price_clause(cap),
        attributes=attributes,
        options=options,
        price_cap=cap,
        title=product.title,
        category=product.category,
        query=product.query,
        path=product.path,
    )
