"""The packages behind the game, imported without what they do to the process.

TextWorld seeds numpy's global generator while it is imported; `alfworld` makes a folder in
the home directory and names it in the environment.
"""

import importlib
import os
import random
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

DATA_VARIABLE = "ALFWORLD_DATA"
"""Environment variable of the package: the folder of the official games."""


class Libraries(NamedTuple):
    """The modules that are used; none of them has types."""

    planner: Any
    """`fast_downward`."""
    logic: Any
    """`textworld.logic`: facts, and queries over them."""
    game: Any
    """`textworld.envs.pddl.logic`: the grammar's actions, the planner's atoms."""
    text: Any
    """`textworld.envs.pddl.textgen`: the grammar's symbols."""


def data_folder() -> str | None:
    """What ALFWORLD_DATA names; None where it is not set."""
    return os.environ.get(DATA_VARIABLE) or None


MAX_REMEMBERED = 20_000
"""Facts that TextWorld keeps for ever, one object each, and compares by value: some 20 MB."""


def forget_facts() -> None:
    """Keeps a process that plays thousands of games from growing by a megabyte with each."""
    import mementos.core

    remembered: dict[Any, Any] = mementos.core._memento_cache  # pyright: ignore[reportPrivateUsage]
    if len(remembered) > MAX_REMEMBERED:
        remembered.clear()


_unused: list[Any] = []
"""Copies of the planner's library that are loaded and that no engine holds."""


def borrow_planner() -> Any:
    """A copy of the planner's library; each has a game of its own in its global variables."""
    return _unused.pop() if _unused else load_libraries().planner.load_lib()


def return_planner(library: Any) -> None:
    """For the next engine. It is never unloaded: the process would crash when it ends."""
    _unused.append(library)


@cache
def load_libraries() -> Libraries:
    """Imports them once."""
    with _imports_undone():
        import fast_downward
        import textworld.logic
        from textworld.envs.pddl import logic, textgen

        return Libraries(fast_downward, textworld.logic, logic, textgen)


@cache
def import_alfworld(module: str) -> Any:
    """A module of the `alfworld` package, such as "alfworld.agents.environment".

    Raises:
        ImportError: it, or what it needs, is not installed.
    """
    with _imports_undone():
        return importlib.import_module(module)


@contextmanager
def _imports_undone() -> Generator[None]:
    """Leaves the global generators and ALFWORLD_DATA as they were, and the home directory
    without the empty folder that `alfworld` makes for its data."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    data = os.environ.get(DATA_VARIABLE)
    os.environ[DATA_VARIABLE] = data or tempfile.gettempdir()
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        if data is None:
            del os.environ[DATA_VARIABLE]
        else:
            os.environ[DATA_VARIABLE] = data
