"""A game's problem in the form that the planner reads, kept on disk once it is known.

Translating takes half a second, reading the result a few milliseconds. The key is a
SHA-256 of domain and problem, so a changed game is never given another's translation.
"""

import gzip
import hashlib
import json
import os
import sys
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from forethought.cache import cache_folder
from forethought.environments.alfworld.libraries import load_libraries
from forethought.errors import StorageError

FORMAT = 1
"""Of the stored files; others are not read."""

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
        known = translate_anew(domain, problem)
        _write(path, known)
    return known


def translate_anew(domain: str, problem: str) -> Translation:
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
