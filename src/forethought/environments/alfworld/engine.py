"""The game itself: the package's planner library decides what is possible and what follows.

The texts come from the game file's grammar. Same texts and same commands as the
package's own `PddlEnv`, byte for byte (`tests/slow`), at a fraction of the time: nothing
is parsed or translated twice.
"""

import gzip
import hashlib
import json
import os
import sys
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from ctypes import Array
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from forethought.durable import cache_folder
from forethought.environments.alfworld.grammar import (
    ActionText,
    Entity,
    GameGrammar,
    Speaker,
    read_grammar,
    readable_names,
)
from forethought.environments.alfworld.package import (
    borrow_planner,
    forget_facts,
    load_libraries,
    return_planner,
)
from forethought.errors import StorageError

FORMAT = 1
"""Version of the stored files; others are not read."""

TRIVIAL = "Atom dummy(val1)"
"""In what the translator writes where it sees that there is nothing to plan."""


@dataclass(frozen=True)
class Translation:
    """What the engine needs of a problem. Names are in lower case, as the planner has them."""

    sas: str
    """The planner's input."""
    types: tuple[tuple[str, tuple[str, ...]], ...]
    """Type, its supertypes."""
    objects: tuple[tuple[str, str], ...]
    """Name, type."""
    facts: tuple[tuple[str, ...], ...]
    """What holds at the start: predicate, arguments."""
    parameters: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """Action, its parameters with their types."""


def translate(domain: str, problem: str) -> Translation:
    """Reads the translation from the cache, or makes it and puts it there."""
    digest = hashlib.sha256(f"{FORMAT}\0{domain}\0{problem}".encode()).hexdigest()
    path = cache_folder() / "alfworld" / digest[:2] / f"{digest}.json.gz"
    known = _read(path)
    if known is None:
        known = translate_again(domain, problem)
        _write(path, known)
    return known


def translate_again(domain: str, problem: str) -> Translation:
    """Asks the planner's own translator, without pruning anything: half a second.

    Raises:
        StorageError: it is no problem of this domain, or one that nobody can solve.
    """
    planner = load_libraries().planner
    with _translator_undone():
        try:
            task, sas = planner.pddl2sas(domain, problem)
        except (Exception, SystemExit) as error:  # whatever it makes of a broken problem
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise StorageError(f"the game's problem cannot be translated: {reason[0]}") from error
    if TRIVIAL in sas:
        raise StorageError("the game cannot be solved: its goal is met at once, or never")
    return Translation(
        sas=sas,
        types=tuple((t.name, tuple(t.supertype_names)) for t in task.types),
        objects=tuple((thing.name, thing.type_name) for thing in task.objects),
        facts=tuple(sorted(_initial_facts(task))),
        parameters=tuple(
            (action.name, tuple((p.name, p.type_name) for p in action.parameters))
            for action in task.actions
        ),
    )


def _initial_facts(task: Any) -> Generator[tuple[str, ...]]:
    for atom in task.init:
        if hasattr(atom, "predicate") and atom.predicate != "=":  # others set the cost to zero
            yield atom.predicate, *atom.args


@contextmanager
def _translator_undone() -> Generator[None]:
    """The translator overwrites the command line and swaps the standard output."""
    arguments, output = sys.argv, sys.stdout
    try:
        yield
    finally:
        sys.argv, sys.stdout = arguments, output


def _read(path: Path) -> Translation | None:
    """A stored translation; None where there is none, or none that is whole."""
    try:
        stored = json.loads(gzip.decompress(path.read_bytes()))
        return Translation(
            sas=stored["sas"],
            types=tuple((name, tuple(above)) for name, above in stored["types"]),
            objects=tuple((name, kind) for name, kind in stored["objects"]),
            facts=tuple(tuple(fact) for fact in stored["facts"]),
            parameters=tuple(
                (name, tuple((p, kind) for p, kind in parameters))
                for name, parameters in stored["parameters"]
            ),
        )
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, translation: Translation) -> None:
    """Best effort: a cache that cannot be written costs time, nothing else. What a kill cuts
    short never gets the name, and would be known by its checksum."""
    data = gzip.compress(json.dumps(asdict(translation)).encode(), compresslevel=3, mtime=0)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)


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
        """Whether the goal is reached."""
        return self._won

    def step(self, command: str) -> str:
        """Executes a command and returns the text that follows; any other text changes nothing."""
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
        return self._speaker.say(operator.text.outcome, operator.mapping)

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
