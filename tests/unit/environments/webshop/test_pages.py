"""The pages: what they say, what can be clicked, where one gets to.

Layouts are those of recorded sessions (15 pages of two of them are equal to the letter, see
docs/environments/webshop.md), with other products.
"""

from dataclasses import replace

import pytest

from forethought.environments.webshop.pages import (
    Place,
    Shop,
    as_rich_text,
    as_text,
    clicks_of,
    follow,
    parse_action,
    pieces_of,
)
from tests.unit.environments.webshop.shops import GOAL, LAMP, SHIRT, many, shop_of

SHOP = shop_of(SHIRT, LAMP)
TOP = f"Instruction: [SEP] {GOAL.instruction} [SEP] Back to Search"
ITEM = (
    f"{TOP} [SEP] < Prev [SEP] color [SEP] white [SEP] navy [SEP] size [SEP] small [SEP] medium "
    "[SEP] large [SEP] Zeno Dress Shirt Slim Fit, Long Sleeve [SEP] Price: $31.5 [SEP] Rating: "
    "N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
)


def walk(*actions: str, shop: Shop = SHOP) -> Place:
    """Where these actions lead; all of them must be possible."""
    place = Place()
    for action in actions:
        following = follow(shop, place, action, clicks_of(pieces_of(shop, place, GOAL)))
        assert following is not None, action
        place = following
    return place


def text(place: Place, shop: Shop = SHOP) -> str:
    return as_text(pieces_of(shop, place, GOAL, 0.75))


TO_SHIRT = ("search[dress shirt]", "click[b0shirt001]")


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ((), f"WebShop [SEP] Instruction: [SEP] {GOAL.instruction} [SEP] Search"),
        (
            TO_SHIRT[:1],
            f"{TOP} [SEP] Page 1 (Total results: 1) [SEP] Next > [SEP] B0SHIRT001 [SEP] "
            f"{SHIRT.title} [SEP] $31.5",
        ),
        (
            (*TO_SHIRT[:1], "click[next >]"),
            f"{TOP} [SEP] Page 2 (Total results: 1) [SEP] < Prev [SEP] Next >",
        ),
        (TO_SHIRT, ITEM),
        ((*TO_SHIRT, "click[navy]"), ITEM),  # what was chosen is not marked
        (
            (*TO_SHIRT, "click[features]"),
            f"{TOP} [SEP] < Prev [SEP] machine washable [SEP] Made of a cotton blend",
        ),
        ((*TO_SHIRT, "click[description]"), f"{TOP} [SEP] < Prev [SEP] A shirt for every day."),
        ((*TO_SHIRT, "click[reviews]"), f"{TOP} [SEP] < Prev"),
        (("search[lamp]", "click[b0lamp0001]", "click[description]"), f"{TOP} [SEP] < Prev"),
        (("search[no such thing]",), f"{TOP} [SEP] Page 1 (Total results: 0) [SEP] Next >"),
        (
            (*TO_SHIRT, "click[navy]", "click[medium]", "click[Buy Now]"),
            "Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] (Paste it in your "
            "MTurk interface.) [SEP] Purchased [SEP] asin [SEP] B0SHIRT001 [SEP] options [SEP] "
            '{"color": "navy", "size": "medium"} [SEP] attrs [SEP] None [SEP] category [SEP] None '
            "[SEP] query [SEP] None [SEP] product category [SEP] None [SEP] Target [SEP] asin "
            "[SEP] options [SEP] attrs [SEP] price upper [SEP] instuction text [SEP] category "
            "[SEP] product category [SEP] query [SEP] Goal [SEP] None [SEP] Reward [SEP] Your "
            "score (min 0.0, max 1.0) [SEP] 0.75 [SEP] Reward Details [SEP] None",
        ),
    ],
)
def test_text(actions: tuple[str, ...], expected: str) -> None:
    assert text(walk(*actions)) == expected


def test_rich_text_marks_what_was_clicked() -> None:
    place = walk(*TO_SHIRT, "click[navy]", "click[small]")
    assert as_rich_text(pieces_of(SHOP, place, GOAL), place) == (
        f"You have clicked small.\nYou have clicked navy.\nInstruction:\n{GOAL.instruction}\n"
        "[button] Back to Search [button_]\n[button] < Prev [button_]\n"
        "color\n  [button] white [button_]\n  [clicked button] navy [clicked button_]\n"
        "size\n  [clicked button] small [clicked button_]\n  [button] medium [button_]\n"
        "  [button] large [button_]\n"
        f"{SHIRT.title}\nPrice: $31.5\nRating: N.A.\n"
        "[button] Description [button_]\n[button] Features [button_]\n[button] Reviews [button_]\n"
        "[button] Buy Now [button_]\n"
    )
    back = walk(*TO_SHIRT, "click[< prev]")
    rich = as_rich_text(pieces_of(SHOP, back, GOAL), back)
    assert "\n\n[clicked button] B0SHIRT001 [clicked button_]\nZeno" in rich


@pytest.mark.parametrize(
    ("action", "read"),
    [
        ("search[Dress SHIRT]", ("search", "dress shirt")),
        ("click[Buy Now]", ("click", "buy now")),
        ("search[x] and then more", ("search", "x")),
        ("search[a]b]", ("search", "a]b")),
        ("search[]", None),
        ("search", None),
        (" search[x]", None),
        ("think\nsearch[x]", None),
        ("search[a][b]", None),
        ("buy[x]", None),
        ("", None),
    ],
)
def test_actions(action: str, read: tuple[str, str] | None) -> None:
    assert parse_action(action) == read


def test_what_can_be_clicked() -> None:
    def clicks(*actions: str) -> tuple[str, ...]:
        return clicks_of(pieces_of(SHOP, walk(*actions), GOAL))

    assert clicks() == ("search",)
    assert clicks("search[shirt]") == ("back to search", "next >", "b0shirt001")
    buttons = ("back to search", "< prev", "description", "features", "reviews", "buy now")
    assert clicks(*TO_SHIRT) == (*buttons, "white", "navy", "small", "medium", "large")
    assert clicks(*TO_SHIRT, "click[reviews]") == ("back to search", "< prev")
    assert clicks(*TO_SHIRT, "click[buy now]") == ()


@pytest.mark.parametrize("action", ["click[search]", "click[b0shirt001]", "click[buy now]"])
def test_what_is_not_on_the_page_leads_nowhere(action: str) -> None:
    assert follow(SHOP, Place(), action, ("search",)) is None


def test_search_is_possible_on_any_page_and_forgets_what_was_chosen() -> None:
    place = walk(*TO_SHIRT, "click[navy]", "search[lamp]")
    assert place == Place("results", keywords="lamp", visited=frozenset({"B0SHIRT001"}))


def test_the_way_back() -> None:
    chosen = walk(*TO_SHIRT, "click[navy]", "click[features]", "click[< prev]")
    assert (chosen.name, chosen.chosen) == ("item", (("color", "navy"),))
    results = walk(*TO_SHIRT, "click[navy]", "click[< prev]")
    assert (results.name, results.chosen, results.keywords) == ("results", (), "dress shirt")
    assert walk(*TO_SHIRT, "click[back to search]") == Place()


def test_a_second_value_takes_the_place_of_the_first() -> None:
    assert walk(*TO_SHIRT, "click[navy]", "click[white]").chosen == (("color", "white"),)


def test_one_value_in_two_options_belongs_to_the_last() -> None:
    twice = replace(SHIRT, options=(("color", ("natural",)), ("style", ("natural",))))
    place = walk(*TO_SHIRT, "click[natural]", shop=shop_of(twice))
    assert place.chosen == (("style", "natural"),)


def test_ten_products_a_page_and_fifty_in_all() -> None:
    shop = shop_of(*many(70))
    pages = [walk("search[shirt]", *["click[next >]"] * n, shop=shop) for n in range(6)]
    assert [len(shop.hits(place)) for place in pages] == [10, 10, 10, 10, 10, 0]
    assert "Page 3 (Total results: 50)" in text(pages[2], shop)
    assert shop.hits(pages[0])[0] == "B000000000"  # equally good ones in the catalogue's order


@pytest.mark.parametrize("asin", ["b0shirt001", "FEATURES", "Buy Now", "Straße 1"])
def test_a_product_is_clicked_whatever_its_code(asin: str) -> None:
    shop = shop_of(replace(SHIRT, asin=asin), replace(SHIRT, asin="B0SHIRT002"))
    place = walk("search[shirt]", f"click[{asin.lower()}]", shop=shop)
    assert (place.name, place.asin) == ("item", asin)
    assert SHIRT.title in text(place, shop)
    assert walk("search[shirt]", f"click[{asin}]", "click[features]", shop=shop).name == "features"


def test_a_title_with_html_is_text() -> None:
    hostile = replace(SHIRT, title='<script>alert("1")</script> Dress Shirt')
    assert hostile.title in text(walk(*TO_SHIRT, shop=shop_of(hostile)), shop_of(hostile))


def test_blank_texts_are_shown_as_html_shows_them() -> None:
    blank = replace(SHIRT, description=" \n ", bullets=("",))
    shop = shop_of(blank)
    assert text(walk(*TO_SHIRT, "click[description]", shop=shop), shop) == f"{TOP} [SEP] < Prev"
    features = text(walk(*TO_SHIRT, "click[features]", shop=shop), shop)
    assert features == f"{TOP} [SEP] < Prev [SEP] "
