"""Who shops without a model: the expert, and the weak shopper whose episodes are stored data."""

import json
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from forethought.environments.contract import ExpertAction
from forethought.environments.webshop.pages import Place, Shop
from forethought.environments.webshop.products import NO_CAP, Goal, GoalOption, Product
from forethought.environments.webshop.reward import is_option, reward_of


class Plan(NamedTuple):
    """What the expert is going to do."""

    query: str
    page: int
    """Page of the results, on which the product is."""
    asin: str
    values: tuple[str, ...]
    """Values of the product's options, to be clicked."""


def make_plan(shop: Shop, goal: Goal) -> Plan:
    """The first query whose first page has a product that brings the best reward, and which.

    Queries go from what a shopper would type, attributes and kind, to the product's whole title,
    whose later pages are looked at, too. Where several products are as good, it is the first.
    """
    known = shop.catalogue.by_asin[goal.asin]
    best = reward_of(known, matching_values(known, goal), goal).total
    for query in queries(goal):
        for asin in shop.engine.search(query)[: shop.per_page]:
            product = shop.catalogue.by_asin[asin]
            values = matching_values(product, goal)
            if reward_of(product, values, goal).total >= best:
                return Plan(query, 1, asin, values)
    found = shop.engine.search(goal.title.lower())
    rank = found.index(goal.asin) if goal.asin in found else 0
    asin = found[rank] if found else goal.asin
    product = shop.catalogue.by_asin[asin]
    return Plan(goal.title.lower(), rank // shop.per_page + 1, asin, matching_values(product, goal))


def queries(goal: Goal) -> tuple[str, ...]:
    """What a shopper with this goal might type: attributes and kind; the chosen options, too;
    the whole instruction."""
    kind = " ".join((*goal.attributes, goal.query))
    options = (option if isinstance(option, str) else option[1] for option in goal.options)
    return kind, " ".join((*options, kind)), goal.instruction.lower()


@lru_cache(maxsize=1 << 14)
def matching_values(product: Product, goal: Goal) -> tuple[str, ...]:
    """One value for each option that the goal asks for and the product has: the same text where
    there is one, else the first that is like it. At most one of each group."""
    groups: dict[str, str] = {}
    for wanted in goal.options:
        name, value = _wanted(product, wanted)
        if value is not None:
            groups.setdefault(name, value)
    return tuple(groups.values())


def _wanted(product: Product, wanted: GoalOption) -> tuple[str, str | None]:
    text = wanted if isinstance(wanted, str) else wanted[1]
    like: list[tuple[str, str]] = []
    for name, values in product.options:
        if text in values:
            return name, text
        like += [(name, value) for value in values if is_option(value, wanted)]
    return like[0] if like else ("", None)


def advise(shop: Shop, place: Place, goal: Goal, plan: Plan) -> ExpertAction:
    """The expert's next action, with its reason."""
    if place.name == "search":
        return _action(f"I look for {plan.query}", f"search[{plan.query}]")
    if place.name == "results":
        return _among_results(shop, place, goal, plan)
    if place.name != "item":
        return _action("back to the product", "click[< prev]")
    if place.asin != plan.asin:
        return _action(f"{place.asin.lower()} is not the best one", "click[< prev]")
    chosen = {value for _, value in place.chosen}
    for value in plan.values:
        if value not in chosen:
            return _action(f"{value} is asked for and not chosen", f"click[{value}]")
    values = ", ".join(plan.values)
    return _action(
        f"{values} chosen, nothing is missing" if values else "nothing to choose", BUY_IT
    )


BUY_IT = "click[buy now]"


def _among_results(shop: Shop, place: Place, goal: Goal, plan: Plan) -> ExpertAction:
    if plan.asin in shop.hits(place):
        code, product = plan.asin.lower(), shop.catalogue.by_asin[plan.asin]
        shown = [a for a in goal.attributes if a in product.title.lower()]
        cap = "" if goal.price_cap == NO_CAP else f", below {goal.price_cap:.0f}"
        said = " and ".join([goal.query, *shown])
        return _action(f"{code} is {said} for {product.price_tag}{cap}", f"click[{code}]")
    if place.keywords != plan.query:
        return _action("another search is better", "click[back to search]")
    if place.page < plan.page:
        return _action("it must be further down", "click[next >]")
    return _action("it must be further up", "click[< prev]")


def _action(thought: str, action: str) -> ExpertAction:
    return ExpertAction(action, (("thoughts", json.dumps(thought)),))


def weak_action(
    *,
    shop: Shop,
    place: Place,
    goal: Goal,
    plan: Plan,
    skill: float,
    randomness: np.random.Generator,
) -> str:
    """What the weak shopper does.

    With probability `skill` each time: the expert's query, the expert's product, a value that the
    goal asks for. Otherwise the kind alone as query, any product on the page, any value or an
    early purchase. It never goes back; whatever is on the page must do.
    """
    able = bool(randomness.random() < skill)
    if place.name == "search":
        return f"search[{plan.query if able else goal.query}]"
    if place.name == "results":
        hits = shop.hits(place)
        if not hits:
            return "click[back to search]"
        asin = plan.asin if able and plan.asin in hits else hits[randomness.integers(len(hits))]
        return f"click[{asin.lower()}]"
    if place.name != "item":
        return "click[< prev]"
    product, chosen = shop.product(place), dict(place.chosen)
    open_groups = [group for group in product.options if group[1] and group[0] not in chosen]
    if able:
        wanted = [v for v in matching_values(product, goal) if v not in chosen.values()]
        return f"click[{wanted[0]}]" if wanted else BUY_IT
    if not open_groups or randomness.random() < 0.3:
        return BUY_IT if randomness.random() < 0.8 else "click[features]"
    values = open_groups[randomness.integers(len(open_groups))][1]
    return f"click[{values[randomness.integers(len(values))]}]"
