"""The game itself: the package's planner library decides what is possible and what follows.

What is said comes from the game file's grammar. Same replies and same commands as the
package's own `PddlEnv`, byte for byte (`tests/slow`), at a fraction of the time: nothing
is parsed or translated twice.
"""

from collections.abc import Mapping
from contextlib import suppress
from ctypes import Array
from dataclasses import dataclass
from typing import Any, NamedTuple

from forethought.environments.alfworld.grammar import (
    ActionText,
    Entity,
    GameGrammar,
    Speaker,
    read_grammar,
)
from forethought.environments.alfworld.libraries import (
    borrow_planner,
    forget_facts,
    load_libraries,
    return_planner,
)
from forethought.environments.alfworld.names import readable_names
from forethought.environments.alfworld.translation import Translation, translate

NOTHING_HAPPENS = "Nothing happens."


class Fact(NamedTuple):
    """What holds in a state, in names that the agent reads: ("inreceptacle", ("mug 1", …))."""

    predicate: str
    arguments: tuple[str, ...]


class _Operator(NamedTuple):
    """One thing that can be done now."""

    number: int
    effects: int
    """How many atoms it changes."""
    text: ActionText
    mapping: Mapping[Any, Any]


class _Known(NamedTuple):
    """What is always true of an operator of one game."""

    command: str
    text: ActionText
    mapping: Mapping[Any, Any]


@dataclass(frozen=True)
class GameText:
    """The three texts that a game file consists of."""

    domain: str
    problem: str
    grammar: str


class Engine:
    """Plays one game at a time. One engine holds one copy of the planner's library.

    Not for threads: the library keeps its state in global variables.
    """

    def __init__(self) -> None:
        libraries = load_libraries()
        self._planner, self._logic = libraries.planner, libraries.logic
        self._atom = libraries.game.Atom
        self._library: Any = borrow_planner()
        self._game: GameText | None = None
        self._translation: Translation | None = None
        self._grammar: GameGrammar | None = None
        self._known: dict[str, _Known] = {}
        self._operators: dict[str, _Operator] = {}
        self._commands: tuple[str, ...] = ()
        self._won = False

    def start(self, game: GameText) -> str:
        """Begins a game, and returns its introduction.

        Raises:
            StorageError: the game cannot be read, or not be solved by anyone.
        """
        if game != self._game:
            self._translation = translate(game.domain, game.problem)
            self._grammar = read_grammar(game.grammar)
            self._game = game
            self._known = {}
            forget_facts()
            self._types = dict(self._translation.objects)
            self._parameters = dict(self._translation.parameters)
        assert self._translation is not None
        assert self._grammar is not None
        self._library.load_sas(self._translation.sas.encode())
        self._state = self._initial_state(self._translation)
        names = {v.name: v.type for fact in self._state.facts for v in fact.arguments}
        called = readable_names(names)
        self._entities = {n: Entity(n, called[n], kind) for n, kind in names.items()}
        self._speaker = Speaker(self._grammar, self._state, self._entities)
        self._look_ahead()
        return self._speaker.introduction()

    @property
    def commands(self) -> tuple[str, ...]:
        """What can be done now, in alphabetical order."""
        return self._commands

    @property
    def won(self) -> bool:
        return self._won

    def step(self, command: str) -> str:
        """Executes a command and returns the reply; any other text changes nothing."""
        operator = self._operators.get(command)
        if operator is None:
            return NOTHING_HAPPENS
        effects = self._atoms(operator.effects)
        self._library.apply_operator(operator.number, effects)
        for effect in effects:
            proposition = effect.get_fact(self._types)
            self._state.remove_fact(proposition.negate())
            self._state.add_fact(proposition)
        self._look_ahead()
        return self._speaker.say(operator.text.reply, operator.mapping)

    def facts(self) -> tuple[Fact, ...]:
        """Everything that holds, in no particular order; the planner's own axioms left out."""
        return tuple(
            Fact(fact.name, tuple(self._entities[v.name].name for v in fact.arguments))
            for fact in self._state.facts
            if "@" not in fact.name
        )

    def close(self) -> None:
        """Lets another engine have the library; this one plays no more."""
        library, self._library = self._library, None
        if library is not None:
            return_planner(library)

    # --- inside ----------------------------------------------------------------------------

    def _atoms(self, count: int) -> "Array[Any]":
        return (self._atom * count)()

    def _initial_state(self, translation: Translation) -> Any:
        rules = self._logic.GameLogic()
        for name, above in translation.types:
            with suppress(ValueError):  # the hierarchy knows "object" already
                rules.types.add(self._logic.Type(name, above))
        state = self._logic.State(rules)
        for predicate, *arguments in translation.facts:
            variables = [self._logic.Variable(name, self._types[name]) for name in arguments]
            state.add_fact(self._logic.Proposition(predicate, variables))
        atoms = self._atoms(self._library.get_state_size())
        self._library.get_state(atoms)
        for atom in atoms:
            fact = atom.get_fact(self._types)
            if not fact.is_negation:
                state.add_fact(fact)
        return state

    def _look_ahead(self) -> None:
        """Asks the planner what can be done now, and whether the goal is reached."""
        self._won = bool(self._library.check_goal())
        operators = (self._planner.Operator * self._library.get_applicable_operators_count())()
        self._library.get_applicable_operators(operators)
        self._operators = {}
        for operator in operators:
            known = self._known.get(operator.name) or self._learn(operator.name)
            self._operators.setdefault(
                known.command,
                _Operator(operator.id, operator.nb_effect_atoms, known.text, known.mapping),
            )
        self._commands = tuple(sorted(self._operators))

    def _learn(self, name: str) -> _Known:
        """A command depends on its operator alone: what it names never moves."""
        assert self._grammar is not None
        action, *arguments = name.split()
        mapping = {
            self._logic.Placeholder(parameter.strip("?"), kind): self._logic.Variable(thing, kind)
            for (parameter, kind), thing in zip(self._parameters[action], arguments, strict=False)
        }
        text = self._grammar.grammar.actions[action]
        known = _Known(self._speaker.say(text.command, mapping), text, mapping)
        self._known[name] = known
        return known
