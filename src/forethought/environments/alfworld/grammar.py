"""A game's own grammar, parsed once: which commands there are, and what is replied.

The file says it in templates such as "You arrive at {r.name}. #examineReceptacle.feedback#",
some under a condition. The package parses a grammar by a general parser (half a second) and
again at every use, and lets Python evaluate its expressions; here it is parsed once, and
only sums of texts and of names are understood.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from forethought.environments.alfworld.package import load_libraries
from forethought.errors import StorageError

MAX_DEPTH = 64
"""Depth of templates in templates; deeper ones go in circles."""

MAX_EXPRESSION = 200
"""Characters of an expression; a sum of thousands of terms has no end in Python's parser. The
longest of the package's own grammar has 30."""

TASK_LINE = re.compile(r"Your task is to: ([^\"#\[\]{}\\]*)\.")
"""In the grammar's text. Tasks that hold signs of the grammar itself are left in place."""

TASK_MARK = "UNKNOWN GOAL"


class Entity(NamedTuple):
    """What a template may say of a thing."""

    id: str
    name: str
    type: str
    definite: str = "the"
    indefinite: str = "a"

    def __str__(self) -> str:
        return self.name


Expression = Callable[[Mapping[str, Entity]], object]


class Text(NamedTuple):
    """A fixed text."""

    text: str


class Named(NamedTuple):
    """Another rule's text."""

    rule: str


class Filled(NamedTuple):
    """Said once for every way in which the condition holds."""

    part: "Named | Expression"
    condition: Any
    """A conjunctive query; None: as things are."""


class Listed(NamedTuple):
    """The same, with "a, b, and c" between."""

    filled: Filled


Part = Text | Named | Filled | Listed


class Production(NamedTuple):
    """One way to write a rule's text, under a condition."""

    condition: Any
    """Applies where it holds; None: always."""
    parts: tuple[Part, ...]


class ActionText(NamedTuple):
    """How an action is written as a command, and what is said when it was executed."""

    command: tuple[Part, ...]
    outcome: tuple[Part, ...]


@dataclass(frozen=True)
class Grammar:
    """Everything that can be said in a game."""

    actions: Mapping[str, ActionText]
    """Texts by the action's name in lower case."""
    rules: Mapping[str, tuple[Production, ...]]


@dataclass(frozen=True)
class GameGrammar:
    """The grammar that games share, and what one of them asks for."""

    grammar: Grammar
    task: str
    """Fills `TASK_MARK`; it where the grammar says the task itself."""


class Speaker:
    """Says what a grammar says, in a state of the game."""

    def __init__(self, game: GameGrammar, state: Any, entities: Mapping[str, Entity]) -> None:
        """
        Args:
            state: the package's `State`, which takes conjunctive queries.
            entities: by id.
        """
        self._game = game
        self._state = state
        self._entities = entities

    def say(self, parts: tuple[Part, ...], mapping: Mapping[Any, Any]) -> str:
        """The text of these parts; `mapping` has the value of each placeholder."""
        return self._say(parts, dict(mapping), 0)

    def introduction(self) -> str:
        """The text with which the game begins: the room, and the task."""
        return self._say((Named("intro"),), {}, 0)

    def _say(self, parts: tuple[Part, ...], mapping: dict[Any, Any], depth: int) -> str:
        if depth > MAX_DEPTH:
            raise StorageError("the game's grammar goes in circles")
        said: list[str] = []
        for part in parts:
            match part:
                case Text(text):
                    said.append(text.replace(TASK_MARK, self._game.task))
                case Named(rule):
                    said.append(self._say(self._choose(rule, mapping), mapping, depth + 1))
                case Filled():
                    said += self._fill(part, mapping, depth)
                case Listed(filled):
                    said.append(self._list(self._fill(filled, mapping, depth), mapping, depth))
        return "".join(said)

    def _choose(self, rule: str, mapping: dict[Any, Any]) -> tuple[Part, ...]:
        """The first production whose condition holds."""
        for condition, parts in self._game.grammar.rules.get(rule, ()):
            if condition is None or any(True for _ in self._assignments(condition, mapping)):
                return parts
        raise StorageError(f"the game's grammar has nothing to say for {rule!r}")

    def _fill(self, filled: Filled, mapping: dict[Any, Any], depth: int) -> list[str]:
        found = [mapping]
        if filled.condition is not None:
            found = [{**mapping, **more} for more in self._assignments(filled.condition, mapping)]
        if isinstance(filled.part, Named):
            rule = filled.part.rule
            return [self._say(self._choose(rule, each), each, depth + 1) for each in found]
        return [str(filled.part(self._variables(each))) for each in found]

    def _list(self, items: list[str], mapping: dict[Any, Any], depth: int) -> str:
        def named(rule: str) -> str:
            return self._say((Named(rule),), mapping, depth + 1)

        if not items:
            return named("list_empty")
        if len(items) == 1:
            return items[0]
        return named("list_separator").join(items[:-1]) + named("list_last_separator") + items[-1]

    def _assignments(self, condition: Any, mapping: dict[Any, Any]) -> Any:
        # The package yields one dictionary again and again; what is kept must be copied.
        return (dict(found) for found in self._state.all_assignments(condition, mapping))

    def _variables(self, mapping: dict[Any, Any]) -> dict[str, Entity]:
        return {place.name: self._entities[thing.name] for place, thing in mapping.items()}


def read_grammar(text: str) -> GameGrammar:
    """The grammar in a game file. All games share one but for the task, so it is parsed once.

    Raises:
        StorageError: it is no grammar, or says something that is not understood.
    """
    tasks = {match.group(1) for match in TASK_LINE.finditer(text)}
    if len(tasks) != 1 or TASK_MARK in text:
        return GameGrammar(_parse(text), TASK_MARK)
    (task,) = tasks
    return GameGrammar(_parse(TASK_LINE.sub(f"Your task is to: {TASK_MARK}.", text)), task)


@lru_cache(maxsize=16)
def _parse(text: str) -> Grammar:
    try:
        return _converted(load_libraries().game.GameLogic(domain="", grammar=text))
    except StorageError:
        raise
    except Exception as error:  # whatever the general parser makes of a broken file
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise StorageError(f"the game's grammar cannot be parsed: {reason[0][:200]}") from error


def _converted(logic: Any) -> Grammar:
    """
    Args:
        logic: the package's `GameLogic`.
    """
    rules: dict[str, list[Any]] = logic.grammar._rules
    return Grammar(
        actions={
            name: ActionText(_parts_of(action.template), _parts_of(action.feedback_rule))
            for name, action in logic.actions.items()
        },
        rules={
            name: tuple(
                Production(
                    _condition(production.condition), tuple(_part(s) for s in production.rhs)
                )
                for production in productions
            )
            for name, productions in rules.items()
        },
    )


def _parts_of(text: str) -> tuple[Part, ...]:
    symbols = load_libraries().text._parse_and_convert(text, rule_name="symbols")
    return tuple(_part(symbol) for symbol in symbols)


def _part(symbol: Any) -> Part:
    textgen = load_libraries().text
    match symbol:
        case textgen.TerminalSymbol():
            return Text(str(symbol.symbol or ""))
        case textgen.NonterminalSymbol():
            return Named(str(symbol.symbol))
        case textgen.ListSymbol():
            return Listed(_filled(symbol.symbol))
        case _:
            return _filled(symbol)


def _filled(symbol: Any) -> Filled:
    textgen = load_libraries().text
    if not isinstance(symbol, textgen.ConditionalSymbol):
        raise StorageError(f"the game's grammar has {symbol!r} where an expression is expected")
    inner: Any = symbol.expression
    if isinstance(inner, textgen.NonterminalSymbol):
        return Filled(Named(str(inner.symbol)), _condition(symbol.given))
    return Filled(compile_expression(str(inner.expression)), _condition(symbol.given))


@cache
def _condition(text: str | None) -> Any:
    return load_libraries().logic.Rule.parse_conjunctive_query(text) if text else None


@cache
def compile_expression(text: str) -> Expression:
    """ "o.indefinite + ' ' + o.name" and "r.name or r.id"; nothing else is executed.

    Raises:
        StorageError: it is anything else, or longer than `MAX_EXPRESSION`.
    """
    if len(text) > MAX_EXPRESSION:
        raise StorageError(
            f"the game's grammar has an expression of {len(text):,} characters, "
            f"{text[:40]!r}… — expected {MAX_EXPRESSION} at most"
        )
    try:
        return _compiled(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, StorageError) as error:
        raise StorageError(f"the game's grammar has the expression {text!r}: not safe") from error


def _compiled(node: ast.expr) -> Expression:
    match node:
        case ast.Constant(value=str(value)):
            return lambda variables: value
        case ast.Name(id=name):
            return lambda variables: variables[name]
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if attribute in Entity._fields:
            return lambda variables: getattr(variables[name], attribute)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = _compiled(left), _compiled(right)
            return lambda variables: str(one(variables)) + str(other(variables))
        case ast.BoolOp(op=ast.Or(), values=[left, right]):
            first, second = _compiled(left), _compiled(right)
            return lambda variables: first(variables) or second(variables)
        case _:
            raise StorageError("only names, texts, + and or")


def readable_names(ids: Iterable[str]) -> dict[str, str]:
    """ "cabinet_bar__plus_00_dot_68_…" is called "cabinet 8", and so on, as the package does:
    in alphabetical order of the ids, numbers are given out from the highest to 1."""
    ordered = sorted(ids)
    left = Counter(_word(name) for name in ordered if "_bar_" in name)
    names: dict[str, str] = {}
    for name in ordered:
        if "_bar_" not in name:
            names[name] = f"{name} "  # the package's own blank
            continue
        word = _word(name)
        names[name] = f"{word} {left[word]}"
        left[word] -= 1
    return names


def _word(name: str) -> str:
    return name.split("_bar_", 1)[0] + ("basin" if "basin" in name else "")
