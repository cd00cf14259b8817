"""WebShop's reward: the cases of the public repository, recorded purchases, and the formula.

The repository's cases are kept with other words in the place of the products' names: what a case
turns on is which words are shared, and which are nouns.
"""

from dataclasses import replace
from random import Random

import pytest
from rapidfuzz import fuzz
from rapidfuzz.utils import default_process

from forethought.environments.webshop.generator import generate_catalogue
from forethought.environments.webshop.products import Goal, GoalOption, Product
from forethought.environments.webshop.reward import (
    has_attribute,
    is_option,
    nouns,
    reward_of,
    title_score,
    type_factor,
)
from tests.unit.environments.webshop.shops import GOAL, SHIRT

# --- the kind of product -------------------------------------------------------------------

SNEAKERS = "Mens D.E.F. Issue 2 Dma Football Trainers Boots Casual - Off White"
OTHER_SNEAKERS = (
    "HILL High Top Mens Football Boots Jim Wilson Streetball Master Breathable Non Slip Outdoor "
    "Trainers"
)
CORD = "Sarid VL Listed 2 Prong Power Cord for KBL Bar 3.1 Bar 2.1 Channel 4K Ultra HD Soundbar"
OTHER_CORD = (
    "CRST AC Power Cord Outlet Socket Cable Plug Lead for Sonic SC-HT830V DVD/VCR Combo Home "
    "Theater System"
)


@pytest.mark.parametrize(
    ("wanted", "bought", "score"),
    [
        pytest.param(SNEAKERS, OTHER_SNEAKERS, 4 / 12, id="initials are three words"),
        pytest.param(
            f"{CORD} Home Theater System Subwoofer", OTHER_CORD, 5 / 17, id="a verb is no noun"
        ),
        pytest.param(CORD, OTHER_CORD, 2 / 13, id="a number with a letter is one"),
        pytest.param("Rustic 921ORB Kitchen and Bath Knob", "2pcs Steel Tweezers", 0.0, id="none"),
        pytest.param("Name 1", "Name 1", 1.0, id="the same"),
        pytest.param("3.1 and 2", "Name", 0.2, id="no noun is wanted: 0.2 by definition"),
        pytest.param("Bar Bar Lamp", "Bar", 1 / 3, id="repeated words count below, not above"),
    ],
)
def test_title_score(wanted: str, bought: str, score: float) -> None:
    assert title_score(bought, wanted) == pytest.approx(score)


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("Zeno Ankle Boots, Steel Toe", "zeno ankle boots steel toe"),
        ("Women's Shoes for Men’s Feet", "women's shoes men’s feet"),
        ("The Lamp with 2 Shades, made for your Desk", "lamp shades desk"),
        ("Soft Black Cotton", "cotton"),
        ("4K 3.1 USB-C_Plug", "4k usb c plug"),
        ("Bar bar BAR", "bar bar bar"),
        ("Café | 漢字", "café 漢字"),
        ("3.1, and 2!", ""),
        ("", ""),
    ],
)
def test_nouns(title: str, found: str) -> None:
    assert nouns(title) == tuple(found.split())


NINE_AND_ONE = "Aa Bb Cc Dd Ee Ff Gg Hh Ii Jj Kk"  # one shared word of eleven: below 0.1


@pytest.mark.parametrize(
    ("title", "query", "path", "factor"),
    [
        pytest.param(CORD, "dress shirt", "x", 0.0, id="nothing shared: 0, whatever the query"),
        pytest.param("Aa Zz", "dress shirt", "x", 0.1, id="below 0.1: 0.1, whatever the query"),
        pytest.param("Aa Bb Zz", "q", "x", 0.5, id="0.1 to 0.2, another kind"),
        pytest.param("Aa Bb Zz", "dress shirt", "x", 1.0, id="0.1 to 0.2, the same query"),
        pytest.param("Aa Bb Cc", "q", "x", 1.0, id="above 0.2"),
        pytest.param("Aa Bb", "q", "Men › Shirts", 1.0, id="two parts shared, in any order"),
        pytest.param("Aa Bb", "q", "Men › Men › Y", 0.5, id="one part twice is one"),
    ],
)
def test_type_factor(title: str, query: str, path: str, factor: float) -> None:
    goal = replace(GOAL, title=NINE_AND_ONE)
    product = replace(SHIRT, title=title, query=query, path=path)
    assert type_factor(product, goal) == factor


# --- attributes, options, the whole ----------------------------------------------------------


def test_attributes() -> None:
    soap = replace(
        SHIRT,
        title="",
        attributes=("essential oil", "natural ingredients"),
        bullets=("This shampoo has essential oils", "and smells like lemons"),
        description="Made with Tea Tree oil",
    )
    assert has_attribute(soap, "essential oils")  # 96 of 100 alike
    assert has_attribute(soap, "tea tree")  # in the description, in lower case
    assert has_attribute(soap, "smells like")
    assert has_attribute(soap, "oils and smells")  # bullets are joined by a blank
    assert not has_attribute(soap, "paraben free")


@pytest.mark.parametrize(
    ("chosen", "wanted", "matches"),
    [
        ("powder snow", "cool powder snow", True),
        ("blue", "grey", False),
        ("light grey", "dark grey", False),  # "dark" and "light" are colors of the list
        ("grey heather", "grey", True),
        ("z2-pink", "pink", True),
        ("38 | 40 | 41 mm", "teal", False),
        ("xl", "XL", True),
        ("red", ("color", "red"), True),
        ("red", ("color", "dark red"), True),  # a pair is compared as Python writes it
        ("xl", ("size", "xl"), True),
        ("", "grey", False),
    ],
)
def test_options(chosen: str, wanted: GoalOption, matches: bool) -> None:
    assert is_option(chosen, wanted) is matches


RECORDED = [
    # attributes met and asked, options met and asked, price within the cap; the reward
    (1, 2, 0, 1, 0.5),
    (0, 1, 0, 0, 0.5),
    (0, 1, 2, 2, 0.75),
    (1, 1, 1, 1, 1.0),
    (0, 1, 1, 1, 2 / 3),
    (0, 1, 0, 1, 1 / 3),
    (1, 1, 0, 0, 1.0),
]
"""Nine people's recorded purchases (seven different ones), all of the right kind and price."""


@pytest.mark.parametrize(("met", "asked", "chosen", "wanted", "reward"), RECORDED)
def test_recorded_purchases(met: int, asked: int, chosen: int, wanted: int, reward: float) -> None:
    values = ("alpha", "omega")
    goal = replace(
        GOAL,
        attributes=tuple(["slim fit"] * met + ["unheard of"] * (asked - met)),
        options=values[:wanted],
    )
    assert reward_of(SHIRT, values[:chosen], goal).total == pytest.approx(reward)


# --- the formula, a second time --------------------------------------------------------------

NOUN_NAMES = "zeno shirt lamp cable boots kettle pillow candle mirror jacket basket towel"
NOUNS = tuple(NOUN_NAMES.split())
OTHER_WORDS = ("with", "for", "and", "soft", "black", "made", "3.1", "2", "|")
"""Words of which a title is made here, so that its nouns are known without asking `nouns`."""

COLOR_NAMES = (
    "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown "
    "burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee "
    "cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso fuchsia "
    "gold granite grape graphite grass gray green grey heather indigo ivory ivy khaki lavender "
    "lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor "
    "mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red "
    "rose royal rust sand sapphire seashell silver skull slate steel stone stonewash sunflower "
    "tan taupe teal tiger turquoise violet walnut wheat white wine yellow"
)
COLORS = frozenset(COLOR_NAMES.split())
"""The public repository's list of color names, which is in the order of the alphabet."""


def normalized(option: GoalOption) -> str:
    """The alphabet's first color name within a text, or among the two elements of a pair; the
    option as Python writes it where there is none."""
    return min((color for color in COLORS if color in option), default=str(option))


def again(product: Product, chosen: tuple[str, ...], goal: Goal) -> float:
    """The published formula, a second time. Titles must be made of NOUNS and OTHER_WORDS: which
    words of a title are nouns is a rule of this project (`reward.nouns`), which has no second
    source and is tested by cases (`test_nouns`)."""

    def alike(a: str, b: str) -> bool:
        return round(fuzz.token_set_ratio(a, b, processor=default_process)) > 85

    texts = [product.title, " ".join(product.bullets), product.description]
    u_att = 0
    for wanted in goal.attributes:
        in_list = any(alike(own, wanted) for own in product.attributes)
        u_att += in_list or any(wanted in text.lower() for text in texts)
    u_opt = sum(any(alike(normalized(a), normalized(b)) for a in chosen) for b in goal.options)
    u_price = 1 if product.price <= goal.price_cap else 0
    mine, asked = (
        [word for word in title.lower().split(" ") if word in NOUNS]
        for title in (product.title, goal.title)
    )
    text_match = len(set(mine).intersection(asked)) / len(asked) if asked else 0.2
    parts = [set(path.split(" › ")) for path in (product.path, goal.path)]
    if text_match == 0:
        r_type = 0.0
    elif text_match < 0.1:
        r_type = 0.1
    elif product.query != goal.query and len(parts[0] & parts[1]) < 2 and text_match <= 0.2:
        r_type = 0.5
    else:
        r_type = 1.0
    return r_type * (u_att + u_opt + u_price) / (len(goal.attributes) + len(goal.options) + 1)


def test_every_color_name_is_found_inside_of_a_word() -> None:
    assert [color for color in COLORS if not is_option(f"{color}xqzxqzxqz", color)] == []


VALUES = (
    *(f"{first} {second}" for first in ("dark", "cool", "z2") for second in ("grey", "teal", "8")),
    *("navy", "navy heather", "grey-blue", "xl", "xxl", "8", "8 wide", "gold | rose"),
)


def test_the_formula_on_random_purchases() -> None:
    """2,000 goals with products of the same kind, of another, and the goal's own, under titles
    and with options that are drawn here."""
    random, catalogue = Random(0), generate_catalogue(0)
    kinds: dict[str, list[Product]] = {}
    for product in catalogue.products:
        kinds.setdefault(product.query, []).append(product)

    def title() -> str:
        nouns = random.sample(NOUNS, random.randrange(len(NOUNS) + 1))
        words = [*nouns, *nouns[: random.randrange(2)], *random.sample(OTHER_WORDS, 3)]
        return " ".join(random.sample(words, len(words))).title()

    seen: set[float] = set()
    factors: set[float] = set()
    for number in range(2000):
        goal = random.choice(catalogue.goals)
        product = [
            catalogue.by_asin[goal.asin],
            random.choice(kinds[goal.query]),
            random.choice(catalogue.products),
        ][number % 3]
        wanted: list[GoalOption] = [*random.sample(VALUES, random.randrange(3))]
        if number % 5 == 0:
            wanted.append(("color", random.choice(VALUES)))
        goal = replace(goal, title=title(), options=tuple(wanted))
        product = replace(product, title=title())
        chosen = tuple(random.sample(VALUES, random.randrange(3)))
        reward = reward_of(product, chosen, goal)
        assert reward.total == pytest.approx(again(product, chosen, goal), abs=1e-12)
        assert 0 <= reward.total <= 1
        seen.add(round(reward.total, 3))
        factors.add(reward.type_factor)
    assert len(seen) > 15
    assert factors == {0.0, 0.1, 0.5, 1.0}
