"""The packages behind the game, imported without what they do to the process.

TextWorld draws from numpy's global generator while it is imported; the planner's translator
reads the command line.
"""

import random
from functools import cache
from typing import Any, NamedTuple

import numpy as np


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


@cache
def load_libraries() -> Libraries:
    """Imports them once, and leaves the global generators as they were."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    try:
        import fast_downward
        import textworld.logic
        from textworld.envs.pddl import logic, textgen

        return Libraries(fast_downward, textworld.logic, logic, textgen)
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
