"""WebShop as an environment: episodes, splits, and who plays."""

import hashlib
from dataclasses import replace
from time import process_time

import numpy as np
import pytest

from forethought.environments.webshop.generator import generate_catalogue
from forethought.environments.webshop.pages import Place
from forethought.environments.webshop.products import SPLITS, Catalogue
from forethought.environments.webshop.shoppers import make_plan, weak_action
from forethought.environments.webshop.webshop import EVALUATION_SEEDS
from tests.unit.environments.webshop.shops import GOAL, SHIRT, made, play, shop_of


@pytest.mark.parametrize("per_page", [10, 3])
def test_the_expert_always_gets_everything(per_page: int) -> None:
    environment = made(per_page=per_page)
    for number in range(100):
        assert play(environment, EVALUATION_SEEDS + number) == 1.0
        assert environment.success()
        metrics = dict(environment.metrics())
        assert metrics["purchased"] == metrics["type_factor"] == metrics["options_matched"] == 1


def test_the_weak_shopper_is_as_good_as_its_skill() -> None:
    environment = made()
    means = [
        float(np.mean([play(environment, seed, skill) for seed in range(120)]))
        for skill in (0.0, 0.5, 1.0)
    ]
    assert 0.3 < means[0] < means[1] - 0.1 < means[2] - 0.2
    assert means[2] > 0.98


def test_the_weak_shopper_passes_over_an_option_without_values() -> None:
    """The original's files may have one."""
    shop = shop_of(replace(SHIRT, options=(("size", ()),)))
    place, plan = Place("item", keywords="shirt", asin=SHIRT.asin), make_plan(shop, GOAL)
    actions = {
        weak_action(
            shop=shop,
            place=place,
            goal=GOAL,
            plan=plan,
            skill=0.0,
            randomness=np.random.default_rng(seed),
        )
        for seed in range(50)
    }
    assert actions == {"click[buy now]", "click[features]"}


def test_the_splits_share_neither_goals_nor_products() -> None:
    catalogue = generate_catalogue(0)
    assert [len(catalogue.split(name)) for name in ("test", "validation")] == [500, 1000]
    assert sum(len(catalogue.split(name)) for name in SPLITS) == len(catalogue.goals) == 12_000
    parts = [{catalogue.goals[n].asin for n in catalogue.split(name)} for name in SPLITS]
    said = [{catalogue.goals[n].instruction for n in catalogue.split(name)} for name in SPLITS]
    for sets in (parts, said):
        assert len(sets[0] | sets[1] | sets[2]) == sum(map(len, sets))
    assert len({product.category for product in catalogue.products}) == 5


def test_held_out_seeds_have_test_goals() -> None:
    environment = made()
    test = [environment.shop.catalogue.goals[n] for n in range(500)]
    assert environment.held_out_episodes == 500
    environment.reset(EVALUATION_SEEDS + 7)
    assert environment.goal in test
    environment.reset(7)
    assert environment.goal not in test


def test_few_goals_are_shared_out_by_fifths() -> None:
    goals = generate_catalogue(0).goals[:101]
    few = Catalogue((), {}, goals, "official")
    assert [len(few.split(name)) for name in SPLITS] == [61, 20, 20]


def test_the_catalogue_is_the_same_for_the_same_seed() -> None:
    generate_catalogue.cache_clear()
    first = generate_catalogue(3)
    generate_catalogue.cache_clear()
    assert generate_catalogue(3) == first
    assert generate_catalogue(4).products != first.products
    product, goal = first.products[0], first.goals[0]
    told = repr((product, goal)).encode()  # the same on any machine
    assert hashlib.sha256(told).hexdigest()[:16] == "2f1b983e2983004d"


def test_what_cannot_be_done_changes_nothing() -> None:
    environment = made()
    before = environment.reset(0)
    for action in ("click[no such label]", "search[]", "", "buy now", "click[" + "x" * 10_000):
        assert environment.step(action).reward == 0
        assert environment.observation().state_key == before.state_key
    assert dict(environment.metrics())["ineffective"] == 5


def test_a_query_of_a_hundred_thousand_characters_is_a_query() -> None:
    environment = made()
    environment.reset(0)
    started = process_time()
    environment.step(f"search[{'dress shirt ' * 9000}]")
    assert process_time() - started < 5
    assert "Total results: 50" in (environment.observation().text or "")


def test_labels_are_taken_in_any_case() -> None:
    environment = made()
    clicks = ("click[buy now]", "click[navy]")
    assert environment.resolve_action("click[Buy Now]", clicks) == "click[buy now]"
    assert environment.resolve_action("click[red]", clicks) is None
    assert environment.resolve_action("buy", clicks) is None
