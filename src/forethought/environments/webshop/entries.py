"""Values of a JSON file, read with their type: a wrong one is an error that names its place."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, cast

from forethought.errors import ConfigError, StorageError

_SHOWN = 40
"""Characters of a wrong value that an error shows."""


class Entry(NamedTuple):
    """A value, and where it is. Each method but `refused` raises StorageError where the value is
    something else than the method returns."""

    value: object
    name: str
    """Its field, or its number in a list; of the whole file the path."""
    parent: "Entry | None" = None

    def refused(self, expected: str) -> StorageError:
        """The error: file and place, what is there, what was expected."""
        return _error(self, f"is {_described(self.value)} — expected {expected}")

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            raise self.refused("a text")
        return self.value

    def text_or_empty(self) -> str:
        """A text; null is the empty one."""
        return "" if self.value is None else self.text()

    def texts(self) -> tuple[str, ...]:
        """All texts of a list."""
        return tuple(member.text() for member in self.members("entry", "a list of texts"))

    def members(self, name: str, expected: str) -> Iterator["Entry"]:
        """What a list holds, each called by `name` and its number."""
        if not isinstance(self.value, list):
            raise self.refused(expected)
        for number, value in enumerate(cast(list[object], self.value)):
            yield Entry(value, f"{name} {number}", self)

    def fields(self) -> Iterator["Entry"]:
        """All fields of an object."""
        for name, value in self._object().items():
            yield Entry(value, name, self)

    def get(self, name: str) -> "Entry | None":
        """One field of an object; None: the object has no such field."""
        known = self._object()
        return Entry(known[name], name, self) if name in known else None

    def field(self, name: str) -> "Entry":
        """One field of an object, which must have it."""
        found = self.get(name)
        if found is None:
            raise _error(self, f"has no field {name!r} — expected the fields of WebShop's files")
        return found

    def _object(self) -> dict[str, object]:
        if not isinstance(self.value, dict):
            raise self.refused("an object")
        return cast(dict[str, object], self.value)


def read_json(path: Path) -> Entry:
    """The whole of a JSON file in UTF-8, with or without a byte order mark.

    Raises:
        ConfigError: the file is not there.
        StorageError: it cannot be read, or is not JSON.
    """
    try:
        return Entry(json.loads(path.read_text(encoding="utf-8-sig")), str(path))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist — it belongs to WebShop's other files") from None
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read ({error.strerror}) — expected a file that this user may read"
        ) from None
    except RecursionError:
        raise StorageError(
            f"{path} holds lists in lists, too deep to be read — expected WebShop's file: get it "
            "again"
        ) from None
    except ValueError as error:
        raise StorageError(
            f"{path} is not whole JSON ({error}) — the file was cut short or altered: get it again"
        ) from None


def _error(entry: Entry, said: str) -> StorageError:
    names = [entry.name]
    while entry.parent is not None:
        entry = entry.parent
        names.insert(0, entry.name)
    place = ": ".join(names).replace("\n", " ")  # a field may be called anything
    return StorageError(f"{place} {said}; correct the file, or get it again")


def _described(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f"the text {value[:_SHOWN]!r}"
        case []:
            return "an empty list"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"the number {value}"[:_SHOWN]
