"""What thoughts claim in EZPoints and Points24, in the words of the games' experts.

'7+' is incomplete, since '7+5=12', I append '5'
12 cannot be reached from '7*', so I append '='
2+9*3-5: 9*3=27, 2+27=29, 29-5=24; so, I append '+'          (an expert who searches)
"""

import operator
import re
from collections import Counter
from fractions import Fraction

from forethought.environments.cards.formula import FormulaFailure, evaluate_tokens, tokenize
from forethought.environments.cards.formula_game import FormulaGame
from forethought.environments.responses import concluded, last_match, read_field
from forethought.types import Claim, ThoughtFacts

_UNREACHABLE = r"(cannot be reached from)|; (nothing), I append"
_CONDITION = r"' is (complete|incomplete), since"
_RECALLED = r"since '([^'=]{1,64})=-?\d+'"
_SEARCHED = r"([^:;]{1,64}): [^:;]*; so, I append"
_NUMBER = r"-?\d{1,9}(?:/\d{1,9})?"
_OPERATION = re.compile(rf"[ ,:](({_NUMBER})([-+*/])\(?({_NUMBER})\)?=({_NUMBER}))(?=[,;])")
_OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def formula_facts(response: str, game: FormulaGame) -> ThoughtFacts:
    """The cards and the formula; whether it is complete, how it can end, and each operation
    that is worked out."""
    thoughts = read_field(response, "thoughts") or ""
    return ThoughtFacts(
        perceived=(
            Claim("cards", _as_list(read_field(response, "cards")), str(list(game.points))),
            Claim("formula", read_field(response, "formula"), game.text),
        ),
        inferred=(*_condition(thoughts, game), _ending(thoughts, game), *_operations(thoughts)),
        concluded_actions=concluded(r"I append '([^']{1,2})'", thoughts),
    )


def _as_list(cards: str | None) -> str | None:
    """As Python writes it: "[7,5]" is "[7, 5]"."""
    if cards is None or not cards.startswith("["):
        return cards
    return f"[{', '.join(part.strip() for part in cards[1:-1].split(','))}]"


def _condition(thoughts: str, game: FormulaGame) -> tuple[Claim, ...]:
    """Whether the formula wins as it is, where that is said."""
    claimed = last_match(_CONDITION, thoughts)
    if claimed is None:
        return ()
    true = "complete" if game.rules.pays(game.tokens) else "incomplete"
    return (Claim("formula is", claimed, true),)


def _ending(thoughts: str, game: FormulaGame) -> Claim:
    """The formula that is to be reached; or that none can be."""
    target = str(game.rules.target)
    formula = last_match(_RECALLED, thoughts) or last_match(_SEARCHED, thoughts)
    if re.search(_UNREACHABLE, thoughts):
        is_reachable = game.completion() is not None
        return Claim(f"{target} can be reached", "no", "yes" if is_reachable else "no")
    if formula is None:
        return Claim("ending", None, f"a formula that is {target}")
    formula = formula.strip()
    return Claim("ending", f"{formula}={target}", f"{formula}{_worth(formula, game)}")


def _worth(formula: str, game: FormulaGame) -> str:
    """ "=12", or why the formula is none that the game could end with."""
    tokens = tokenize(formula)
    if isinstance(tokens, FormulaFailure):
        return f" is no formula ({tokens})"
    if not formula.startswith(game.text):
        return f" does not begin with '{game.text}'"
    if Counter(filter(str.isdigit, tokens)) != Counter(map(str, game.points)):
        return " has other cards"
    if game.rules.pays(tokens):
        return f"={game.rules.target}"
    value = evaluate_tokens(tokens)
    return f" is no formula ({value})" if isinstance(value, FormulaFailure) else f"={value}"


def _operations(thoughts: str) -> tuple[Claim, ...]:
    """Each "9*3=27", beside what it comes to."""
    return tuple(
        Claim("operation", whole, f"{whole[: -len(claimed)]}{_computed(left, sign, right)}")
        for whole, left, sign, right, claimed in _OPERATION.findall(thoughts)
    )


def _computed(left: str, sign: str, right: str) -> str:
    try:
        return str(_OPERATORS[sign](Fraction(left), Fraction(right)))
    except ZeroDivisionError:
        return "nothing"
