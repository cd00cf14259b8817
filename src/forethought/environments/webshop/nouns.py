"""Which words of a product's title are nouns: one of the parts of the reward needs to know.

The original asks a statistical tagger (spaCy's `en_core_web_sm`). On titles, which are lists of
capitalised words, that tagger calls nearly every word a noun or a proper noun that is not a
function word, a number or a common adjective; these rules say just that. They need no model, and
give the same reward on every machine. `docs/environments/webshop.md` compares the two.
"""

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

_OTHERS = (
    # function words
    "a an the this that these those and or but nor of for with without in on at by to from into "
    "onto over under per via as is are was were be been am it its you your yours we our us he she "
    "his her him they them their i me my if than then so not no nor all any each every both more "
    "most less least some such very too also just only can will may might must should would could "
    "do does did has have had who which what when where while how up out about between after "
    "before during "
    # adjectives and adverbs that are adjectives in titles, too
    "modern new natural black easy adjustable portable perfect great good best long short thick "
    "thin soft durable comfortable breathable lightweight waterproof reusable removable flexible "
    "compatible suitable available different various large small big wide narrow multi mini dry "
    "wet clean safe strong high low full extra other first second one two three four five six "
    "seven eight nine ten upholstered listed "
    # verbs of titles
    "made fits makes keeps includes get make keep use using"
)
_NOT_NOUNS = frozenset(_OTHERS.split())


@lru_cache(maxsize=1 << 14)
def nouns(title: str) -> tuple[str, ...]:
    """The nouns and proper nouns of a title, lower case, in order; repeated where it repeats."""
    words = (word.lower() for word in _WORD.findall(title))
    return tuple(word for word in words if word not in _NOT_NOUNS and any(map(str.isalpha, word)))
