"""Who plays the other side, and advises this one."""

from typing import NamedTuple, Protocol

import chess
import numpy as np


class Recommendation(NamedTuple):
    """The move that the stronger player would make, and why."""

    move: chess.Move
    score: float
    """Centipawns, for the side to move."""
    mate_in: int | None
    """Own moves to a forced mate, or None where none is seen."""


class Opponent(Protocol):
    """A player. What it does is a function of the game so far and of the random numbers
    given, and of nothing that happened before: a lost game is restored by replay."""

    @property
    def label(self) -> str:
        """The kind of task, as results name it."""
        ...

    @property
    def restarts(self) -> int:
        """How often an engine had to be started anew since this player was built."""
        ...

    def reply(self, board: chess.Board, randomness: np.random.Generator) -> chess.Move:
        """The opponent's move.

        Raises:
            EnvironmentUnusableError: an engine failed, and failed again after a restart.
        """
        ...

    def advise(self, board: chess.Board) -> Recommendation:
        """What a much stronger player would do. Raises as `reply` does."""
        ...

    def close(self) -> None: ...
