"""What a shopper's thoughts claim, and what is so: by hand, and of every thought of the expert."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.environments.webshop.pages import Place
from forethought.environments.webshop.thoughts import webshop_facts
from forethought.environments.webshop.webshop import WebShop
from forethought.types import Claim
from tests.unit.environments.webshop.shops import GOAL, LAMP, SHIRT, shop_of

SHOP = shop_of(SHIRT, LAMP)
RESULTS = Place("results", keywords="shirt lamp")
ITEM = Place("item", keywords="shirt", asin=SHIRT.asin)


def response(thoughts: str) -> str:
    return f'{{\n"thoughts": {json.dumps(thoughts)},\n"action": "click[x]"\n}}'


def test_a_product_of_the_page() -> None:
    thoughts = "b0shirt001 is dress shirt and slim fit for $31.5, below 40"
    facts = webshop_facts(response(thoughts), shop=SHOP, place=RESULTS, goal=GOAL)
    assert facts.perceived == (
        Claim("b0shirt001 on the page", "yes", "yes"),
        Claim("kind of b0shirt001", "dress shirt", "dress shirt"),
        Claim("slim fit in the title of b0shirt001", "yes", "yes"),
        Claim("price of b0shirt001", "$31.5", "$31.5"),
        Claim("price cap", "40", "40"),
    )
    assert facts.inferred == (Claim("$31.5 below 40", "yes", "yes"),)
    assert facts.concluded_actions == ("click[b0shirt001]",)


def test_a_product_whose_code_is_in_lower_case() -> None:
    shop = shop_of(replace(SHIRT, asin="b0shirt001"), LAMP)
    thoughts = "b0shirt001 is dress shirt for $31.5"
    facts = webshop_facts(response(thoughts), shop=shop, place=RESULTS, goal=GOAL)
    assert facts.perceived[0] == Claim("b0shirt001 on the page", "yes", "yes")
    assert all(claim.is_true for claim in facts.perceived)


def test_a_product_that_is_described_wrongly() -> None:
    thoughts = "b0lamp0001 is dress shirt and slim fit for $60.5, below 50"
    facts = webshop_facts(response(thoughts), shop=SHOP, place=RESULTS, goal=GOAL)
    assert [claim.true for claim in facts.perceived] == ["yes", "table lamp", "no", "$45.0", "40"]
    assert not any(claim.is_true for claim in facts.perceived[1:])
    assert facts.inferred == (Claim("$60.5 below 50", "yes", "no"),)


@pytest.mark.parametrize(
    ("price", "is_below"),
    [
        ("$31.5 to $60.5", "yes"),
        ("$41", "no"),
        ("$3.1.5", "no"),
        ("$...", "no"),
        ("$3. to $5", "no"),
    ],
)
def test_a_price_that_is_none_is_below_nothing(price: str, is_below: str) -> None:
    thoughts = f"b0shirt001 is dress shirt for {price}, below 40"
    facts = webshop_facts(response(thoughts), shop=SHOP, place=RESULTS, goal=GOAL)
    assert facts.inferred == (Claim(f"{price} below 40", "yes", is_below),)


def test_a_product_that_is_not_there() -> None:
    thoughts = "b0nowhere1 is dress shirt for $31.5"
    facts = webshop_facts(response(thoughts), shop=SHOP, place=RESULTS, goal=GOAL)
    assert facts.perceived == (Claim("b0nowhere1 on the page", "yes", "no"),)


@pytest.mark.parametrize(
    ("value", "chosen", "truth"),
    [
        ("navy", (), ["yes", "no"]),
        ("navy", (("color", "navy"),), ["yes", "yes"]),
        ("medium", (), ["no", "no"]),
    ],
)
def test_an_option(value: str, chosen: tuple[tuple[str, str], ...], truth: list[str]) -> None:
    place = replace(ITEM, chosen=chosen)
    thoughts = f"{value} is asked for and not chosen"
    facts = webshop_facts(response(thoughts), shop=SHOP, place=place, goal=GOAL)
    assert [(claim.claimed, claim.true) for claim in facts.perceived] == [
        ("yes", truth[0]),
        ("no", truth[1]),
    ]
    assert facts.concluded_actions == (f"click[{value}]",)


@pytest.mark.parametrize(
    ("thoughts", "chosen", "perceived", "missing"),
    [
        (
            "navy chosen, nothing is missing",
            ("navy",),
            [Claim("chosen", "navy", "navy")],
            "nothing",
        ),
        ("navy chosen, nothing is missing", (), [Claim("chosen", "navy", "nothing")], "navy"),
        ("navy chosen, nothing is missing", ("white",), [Claim("chosen", "navy", "white")], "navy"),
        ("nothing to choose", (), [], "navy"),
    ],
)
def test_the_purchase(
    thoughts: str, chosen: tuple[str, ...], perceived: list[Claim], missing: str
) -> None:
    place = replace(ITEM, chosen=tuple(("color", value) for value in chosen))
    facts = webshop_facts(response(thoughts), shop=SHOP, place=place, goal=GOAL)
    assert list(facts.perceived) == perceived
    assert facts.inferred == (Claim("missing", "nothing", missing),)
    assert facts.concluded_actions == ("click[buy now]",)


@pytest.mark.parametrize(
    ("thoughts", "action"),
    [
        ("I look for slim fit dress shirt", "search[slim fit dress shirt]"),
        ("another search is better", "click[back to search]"),
        ("it must be further down", "click[next >]"),
        ("it must be further up", "click[< prev]"),
        ("back to the product", "click[< prev]"),
        ("b0shirt001 is not the best one", "click[< prev]"),
    ],
)
def test_where_to_go(thoughts: str, action: str) -> None:
    facts = webshop_facts(response(thoughts), shop=SHOP, place=RESULTS, goal=GOAL)
    assert (facts.perceived, facts.inferred, facts.concluded_actions) == ((), (), (action,))


SCRAPS = st.text(alphabet="$.0139 to,andé[]\n", max_size=6)


@given(
    st.sampled_from(
        (
            "b0shirt001 is {0} and {1} for ${1}, below {2}",
            "b0{0} is {1} for ${2}",
            "{0}, {1} chosen, nothing is missing{2}",
            "nothing to choose{0}{1}{2}",
            "{0}{1}{2} is asked for and not chosen",
            "I look for {0}{1}{2}",
        )
    ),
    st.tuples(SCRAPS, SCRAPS, SCRAPS),
)
def test_any_text_has_facts(sentence: str, scraps: tuple[str, str, str]) -> None:
    for place in (Place(), RESULTS, ITEM, Place("done", asin=SHIRT.asin)):
        webshop_facts(response(sentence.format(*scraps)), shop=SHOP, place=place, goal=GOAL)


def test_words_of_ones_own_claim_nothing() -> None:
    facts = webshop_facts(response("hm, a shirt"), shop=SHOP, place=ITEM, goal=GOAL)
    assert (facts.perceived, facts.inferred, facts.concluded_actions) == ((), (), ())


def test_all_that_the_expert_thinks_is_true() -> None:
    environment = WebShop(per_page=5)
    said = 0
    for seed in range(100):
        environment.reset(seed)
        is_over = False
        while not is_over:
            advice = environment.expert()
            fields = {name: json.loads(value) for name, value in advice.fields}
            facts = environment.thought_facts(response(fields["thoughts"]))
            assert facts.concluded_actions == (advice.action,)
            assert all(claim.is_true for claim in (*facts.perceived, *facts.inferred)), facts
            said += len(facts.perceived) + len(facts.inferred)
            transition = environment.step(advice.action)
            is_over = transition.terminated or transition.truncated
    assert said > 600
