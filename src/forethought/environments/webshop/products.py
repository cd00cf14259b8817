"""What a shop holds: products, goals, and which goals belong to which split."""

from dataclasses import dataclass
from random import Random
from typing import Literal

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
    """At most ten characters; real ones are upper case."""
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
