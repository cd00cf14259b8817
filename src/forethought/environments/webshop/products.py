"""What a shop holds: products, goals, and which goals belong to which split."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product as combinations
from pathlib import Path
from random import Random
from typing import Any, Literal, cast

from forethought.errors import ConfigError, StorageError

GoalOption = str | tuple[str, str]
"""What is asked for in an option: its value, or, in synthetic goals, its name and value."""

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

TEST_GOALS, VALIDATION_GOALS = 500, 1000
SHUFFLE_SEED = 233
NO_CAP = 1_000_000.0
"""The price cap of a goal without one."""

_PRICE_STEPS = tuple(10.0 * number for number in range(1, 100))


@dataclass(frozen=True, slots=True)
class Product:
    """One page of the shop."""

    asin: str
    """Ten characters, upper case."""
    title: str
    description: str
    bullets: tuple[str, ...]
    attributes: tuple[str, ...]
    """What the reward looks for first; never shown."""
    options: tuple[tuple[str, tuple[str, ...]], ...]
    """Name and values of each option, lower case."""
    price: float
    price_tag: str
    """As the page shows it: "$31.5", "$10.0 to $20.0"."""
    category: str
    """ "fashion"."""
    query: str
    """What was searched for when the product was found, lower case."""
    path: str
    """ "Clothing › Women › Shoes"."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a shopper is asked to buy."""

    asin: str
    """The product for which the instruction was written."""
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[GoalOption, ...]
    price_cap: float
    title: str
    category: str
    query: str
    path: str


@dataclass(frozen=True)
class Catalogue:
    """All products and goals."""

    products: tuple[Product, ...]
    by_asin: dict[str, Product]
    goals: tuple[Goal, ...]
    """In the original's order: shuffled with seed 233."""
    label: str
    """ "generated" or "official"."""
    goals_without_product: int = 0
    """Goals of the files whose product is not in them; they are left out."""

    def split(self, name: Split) -> range:
        """Numbers of a split's goals: test 0 to 499, validation 500 to 1,499, train the rest.
        Where there are fewer than 3,000 goals, a fifth each for test and validation at most."""
        total = len(self.goals)
        fifth = total // 5
        test = min(TEST_GOALS, fifth) if total < 3000 else TEST_GOALS
        validation = min(VALIDATION_GOALS, fifth) if total < 3000 else VALIDATION_GOALS
        return {
            "test": range(test),
            "validation": range(test, test + validation),
            "train": range(test + validation, total),
        }[name]


def draw_cap(price: float, random: Random) -> float:
    """A goal's price cap: the larger of two of the four next multiples of 10 above the price.
    Above 980 dollars there are not two, and so no cap."""
    above = [step for step in _PRICE_STEPS if step > price][:4]
    return max(random.sample(above, 2)) if len(above) >= 2 else NO_CAP


def price_clause(cap: float) -> str:
    """The end of an instruction."""
    return "" if cap == NO_CAP else f", and price lower than {cap:.2f} dollars"


GoalSource = Literal["human", "synthetic"]

_PAIRS = (
    ("items_shuffle.json", "items_ins_v2.json"),
    ("items_shuffle_1000.json", "items_ins_v2_1000.json"),
)
_HUMAN = "items_human_ins.json"
NO_PRICE = 100.0
"""Price of products without one, as in the original."""

Json = Mapping[str, Any]


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
    attributes = _object(where / found[1])
    products = tuple(_products(where / found[0], attributes))
    by_asin = {product.asin: product for product in products}
    if source == "human":
        asked = _object(where / _HUMAN)
        goals = list(_human_goals(products, asked, where / _HUMAN))
        missing = sum(len(goals) for asin, goals in asked.items() if asin not in by_asin)
    else:
        goals = list(_synthetic_goals(products, attributes))
        missing = sum(
            "instruction" in item for asin, item in attributes.items() if asin not in by_asin
        )
    if not goals:
        raise StorageError(
            f"{folder}: no {source} goal belongs to one of the {len(products)} products "
            f"({missing} goals are for others) — the goal file must be of the same products"
        )
    Random(SHUFFLE_SEED).shuffle(goals)
    return Catalogue(products, by_asin, tuple(goals), "official", missing)


def _load(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist — it belongs to WebShop's other files") from None
    except ValueError as error:
        raise StorageError(
            f"{path} is not whole JSON ({error}) — the file was cut short or altered: get it again"
        ) from None


def _object(path: Path) -> Json:
    value = _load(path)
    if not isinstance(value, dict):
        raise StorageError(f"{path} holds a {type(value).__name__} — expected an object by product")
    return cast(Json, value)


def _products(path: Path, attributes: Json) -> Iterator[Product]:
    items = _load(path)
    if not isinstance(items, list):
        raise StorageError(f"{path} holds a {type(items).__name__} — expected a list of products")
    seen: set[str] = set()
    for number, item in enumerate(cast(list[Json], items)):
        try:
            asin = str(item["asin"])
            if asin == "nan" or len(asin) > 10 or asin in seen:
                continue
            seen.add(asin)
            yield _product(item, asin, attributes)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StorageError(
                f"{path}: product {number} cannot be read ({type(error).__name__}: {error}) — "
                "expected the fields of the original's file"
            ) from None


def _product(item: Json, asin: str, attributes: Json) -> Product:
    bullets = item["small_description"]
    prices = [
        float(re.sub(r"[^\d.]", "", part)) for part in (item.get("pricing") or "").split("$")[1:]
    ]
    if len(prices) > 1:
        price = Random(f"price of {asin}").uniform(prices[0], prices[1])
        tag = f"${prices[0]} to ${prices[1]}"
    else:
        price = prices[0] if prices else NO_PRICE
        tag = f"${price}"
    return Product(
        asin=asin,
        title=item["name"],
        description=item["full_description"] or "",
        bullets=tuple(bullets) if isinstance(bullets, list) else (bullets or "",),
        attributes=tuple(attributes.get(asin, {}).get("attributes", ("DUMMY_ATTR",))),
        options=tuple(
            (name.lower(), tuple(_value(content) for content in contents))
            for name, contents in (item.get("customization_options") or {}).items()
            if contents is not None
        ),
        price=price,
        price_tag=tag,
        category=item["category"],
        query=item["query"].lower().strip(),
        path=item["product_category"],
    )


def _value(content: Json) -> str:
    return content["value"].strip().replace("/", " | ").lower()


def _human_goals(products: tuple[Product, ...], asked: Json, path: Path) -> Iterator[Goal]:
    random = Random(f"caps {SHUFFLE_SEED}")
    for product in products:
        for item in asked.get(product.asin, ()):
            try:
                wanted = tuple(item["instruction_attributes"])
                if wanted:
                    text = item["instruction"].strip(".")
                    options: tuple[GoalOption, ...] = tuple(item["instruction_options"])
                    yield _goal(product, text, wanted, options, random)
            except (KeyError, TypeError, AttributeError) as error:
                raise StorageError(
                    f"{path}: a goal of {product.asin} cannot be read "
                    f"({type(error).__name__}: {error}) — expected the original's fields"
                ) from None


def _synthetic_goals(products: tuple[Product, ...], attributes: Json) -> Iterator[Goal]:
    """One goal for each combination of a product's options."""
    random = Random(f"caps {SHUFFLE_SEED}")
    for product in products:
        item = attributes.get(product.asin, {})
        if item.get("instruction") is None:
            continue
        groups = sorted(product.options)
        cap = draw_cap(product.price, random)
        for values in combinations(*(values for _, values in groups)):
            pairs = [(name, value) for (name, _), value in zip(groups, values, strict=True)]
            said = ", and ".join(f"{name}: {value}" for name, value in pairs)
            yield _goal(
                product,
                item["instruction"] + (f" with {said}" if said else ""),
                tuple(item["instruction_attributes"]),
                tuple(pairs),
                random,
                cap,
            )


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
