"""The search engine: its formula by hand, and queries of any kind."""

import string
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.environments.webshop.pages import HITS, SearchEngine
from forethought.environments.webshop.products import Product
from forethought.environments.webshop.webshop import open_shop
from tests.unit.environments.webshop.shops import SHIRT


def titled(**titles: str) -> SearchEngine:
    """An engine of products with these titles and nothing else, by their codes."""
    blank = replace(SHIRT, description="", bullets=(), options=())
    return SearchEngine([replace(blank, asin=a, title=title) for a, title in titles.items()])


def of_the_default_catalogue() -> tuple[SearchEngine, dict[str, Product]]:
    """The engine of the generated catalogue, and its products."""
    shop = open_shop(None, "human", 0)
    return shop.engine, shop.catalogue.by_asin


def test_search_ranks_by_lucenes_formula() -> None:
    """BM25 by hand, on three documents: idf · tf / (tf + k1 · (1 - b + b · length / mean))."""
    engine = titled(A="red shoe", B="red red lamp of steel", C="a blue chair")
    assert engine.search("red") == ("B", "A")
    lengths = {"A": 2, "B": 4, "C": 2}  # without stop words
    idf, mean = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5)), np.mean(list(lengths.values()))
    wanted = {
        asin: idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * lengths[asin] / mean))
        for asin, tf in (("A", 1), ("B", 2))
    }
    scores = engine._index.get_scores(["red"])  # pyright: ignore[reportPrivateUsage]
    assert scores[:2] == pytest.approx([wanted["A"], wanted["B"]], rel=1e-5)
    assert engine.search("chairs") == ("C",)  # stems
    assert engine.search("of a") == ()


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("s", ""),
        ("S's", ""),
        ("men s shirt", "men shirt"),
        ("dress shirt, size s", "dress shirt, size"),
    ],
)
def test_an_s_that_no_product_has_changes_nothing(query: str, plain: str) -> None:
    """The stemmer leaves nothing of it, and bm25s has nothing as a word beyond its index."""
    engine, _ = of_the_default_catalogue()
    assert engine.search(query) == engine.search(plain)


def test_an_s_that_a_product_has_is_a_word() -> None:
    engine = titled(A="s hook", B="hook", C="lamp")
    assert engine.search("s") == engine.search("S's") == ("A",)
    assert set(engine.search("s hook")) == {"A", "B"}


ODD = (
    *string.printable,
    *map(chr, range(0x80, 0x250)),
    *"٣५²½ßſıİΣς漢字ｓ𝐬🙂\u0301\u200d\ufeff\ud800\x00",
    *("a", "and", "the", "of", "not", "as", "us", "is"),
    *(first + second for first in string.ascii_lowercase for second in "sy'."),
    *("", "'s", "s's's", "x.y", "ing", "eed", "sses", "zzzqqq", "B0" * 400, "é" * 2000),
)


def test_single_characters_stop_words_and_stray_endings_are_queries() -> None:
    engine, products = of_the_default_catalogue()
    for word in ODD:
        for query in (word, f"no such thing {word}"):
            require_hits(engine.search(query), products)


@given(st.text(max_size=30) | st.lists(st.sampled_from(ODD), max_size=6).map(" ".join))
def test_any_text_is_a_query(query: str) -> None:
    engine, products = of_the_default_catalogue()
    require_hits(engine.search(query), products)


def require_hits(found: tuple[str, ...], products: dict[str, Product]) -> None:
    assert len(found) == len(set(found)) <= HITS
    assert all(asin in products for asin in found)


def test_products_without_a_word_are_never_found() -> None:
    mixed = titled(A="!!!", B="of the", C="lamp", D="")
    assert (mixed.search("lamp"), mixed.search("of")) == (("C",), ())
    none = titled(A="!!!", B="of the")
    assert none.is_empty
    assert (none.search("lamp"), none.search("s")) == ((), ())
