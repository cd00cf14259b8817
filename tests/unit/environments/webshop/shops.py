"""A shop of a few products that a test can oversee; and WebShop itself, made and played."""

from dataclasses import replace
from typing import Any

import numpy as np

from forethought.environments.registry import make_environment
from forethought.environments.webshop.pages import SearchEngine, Shop
from forethought.environments.webshop.products import Catalogue, Goal, Product
from forethought.environments.webshop.webshop import WebShop

SHIRT = Product(
    asin="B0SHIRT001",
    title="Zeno Dress Shirt Slim Fit, Long Sleeve",
    description="A shirt for every day.",
    bullets=("machine washable", "Made of a cotton blend"),
    attributes=("slim fit", "long sleeve"),
    options=(("color", ("white", "navy")), ("size", ("small", "medium", "large"))),
    price=31.5,
    price_tag="$31.5",
    category="fashion",
    query="dress shirt",
    path="Clothing › Men › Shirts",
)
LAMP = Product(
    asin="B0LAMP0001",
    title="Ruvo Table Lamp Bronze Finish",
    description="",
    bullets=("dimmable light",),
    attributes=("bronze finish",),
    options=(),
    price=45.0,
    price_tag="$45.0",
    category="home",
    query="table lamp",
    path="Home & Kitchen › Lighting › Lamps",
)
GOAL = Goal(
    asin=SHIRT.asin,
    instruction="i need a slim fit shirt in navy, and price lower than 40.00 dollars",
    attributes=("slim fit", "cotton blend"),
    options=("navy",),
    price_cap=40.0,
    title=SHIRT.title,
    category=SHIRT.category,
    query=SHIRT.query,
    path=SHIRT.path,
)


def many(count: int) -> tuple[Product, ...]:
    """The shirt so often, under other codes."""
    return tuple(replace(SHIRT, asin=f"B0{number:08d}") for number in range(count))


def shop_of(*products: Product, goals: tuple[Goal, ...] = (GOAL,)) -> Shop:
    """A shop of these products."""
    by_asin = {product.asin: product for product in products}
    catalogue = Catalogue(products, by_asin, goals, "generated")
    return Shop(catalogue, SearchEngine(products))


def made(**options: Any) -> WebShop:
    """WebShop with these options."""
    environment = make_environment("WebShop", **options)
    assert isinstance(environment, WebShop)
    return environment


def play(environment: WebShop, seed: int, skill: float | None = None) -> float:
    """An episode of the expert, or of the weak shopper; its return."""
    environment.reset(seed)
    weak = environment.data_policy(skill or 0.0, np.random.default_rng(seed))
    total = 0.0
    while True:
        action = environment.expert() if skill is None else weak()
        reward, terminated, truncated = environment.step(action.action)
        total += reward
        if terminated or truncated:
            return total
