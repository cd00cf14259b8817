"""The shop's search engine: BM25 as Lucene computes it, over products' texts."""

import re
from collections.abc import Sequence
from itertools import chain

import bm25s
import numpy as np
import Stemmer

from forethought.environments.webshop.products import Product

HITS = 50
K1, B = 0.9, 0.4
"""Pyserini's defaults, which the original runs with."""
MAX_QUERY = 1000
"""Characters of a query that are looked at; the rest is passed over."""
CACHE = 1 << 16
"""Queries whose results are kept."""

_COMMON = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
_STOP_WORDS = frozenset(_COMMON.split())
"""Lucene's, in English."""
_WORD = re.compile(r"\w+(?:['’.]\w+)*")


class SearchEngine:
    """Products by what is typed."""

    def __init__(self, products: Sequence[Product]) -> None:
        self._stemmer = Stemmer.Stemmer("porter")
        self._stems: dict[str, str] = {}
        documents = [self._words(_text_of(product)) for product in products]
        vocabulary = {word: n for n, word in enumerate(dict.fromkeys(chain(*documents)))}
        self._asins = [product.asin for product in products]
        self._vocabulary = vocabulary
        self._index = bm25s.BM25(method="lucene", k1=K1, b=B)
        ids = [[vocabulary[word] for word in words] for words in documents]
        self._index.index((ids, vocabulary), show_progress=False)
        self._known: dict[str, tuple[str, ...]] = {}

    def search(self, query: str) -> tuple[str, ...]:
        """Codes of at most 50 products that share a word with the query, best first, equally good
        ones in the order of the catalogue."""
        query = query[:MAX_QUERY]
        if query not in self._known:
            if len(self._known) >= CACHE:
                self._known.clear()
            self._known[query] = self._search(query)
        return self._known[query]

    def _search(self, query: str) -> tuple[str, ...]:
        words = [word for word in self._words(query) if word in self._vocabulary]
        if not words:
            return ()
        scores = self._index.get_scores(words)
        best = len(scores) - min(HITS, len(scores))
        least = np.partition(scores, best)[best]
        found = np.flatnonzero((scores >= least) & (scores > 0))
        order = np.lexsort((found, -scores[found]))[:HITS]
        return tuple(self._asins[number] for number in found[order])

    def _words(self, text: str) -> list[str]:
        """Stems of a text's words, stop words left out."""
        stems: list[str] = []
        for word in _WORD.findall(text.lower()):
            if word in _STOP_WORDS:
                continue
            stem = self._stems.get(word)
            if stem is None:
                stem = self._stems[word] = self._stemmer.stemWord(word.removesuffix("'s"))
            stems.append(stem)
        return stems


def _text_of(product: Product) -> str:
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in product.options)
    bullet = product.bullets[0] if product.bullets else ""
    return f"{product.title} {product.description} {bullet} {options}"
