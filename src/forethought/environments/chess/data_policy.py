"""Who makes the offline games: an engine of mixed strength that often moves at random."""

from typing import NamedTuple

import chess
import numpy as np

from forethought.environments.chess.stockfish import Stockfish, Strength

NODES = 1_000
"""Per move, at every strength."""

ELOS = (1350, 1600, 1900, 2200, 2500, None)
"""Equally likely; None is full strength at this number of nodes."""


class Author(NamedTuple):
    """Who plays one game."""

    strength: Strength
    random_rate: float
    """Share of the moves that are drawn uniformly from the legal ones."""

    def move(
        self, board: chess.Board, engine: Stockfish, randomness: np.random.Generator
    ) -> chess.Move:
        """This author's next move."""
        if randomness.random() < self.random_rate:
            moves = list(board.legal_moves)
            return moves[int(randomness.integers(len(moves)))]
        return engine.choose(board, self.strength, randomness)


def draw_author(skill: float, randomness: np.random.Generator) -> Author:
    """The author of one game: strength uniform over `ELOS`, share of random moves uniform
    from 0 to 2 (1 - skill), at most 1.

    Args:
        skill: share of moves that the engine makes, on average (from 0.5 on): 0 to 1.
    """
    elo = ELOS[int(randomness.integers(len(ELOS)))]
    rate = min(1.0, 2 * (1 - skill) * float(randomness.random()))
    return Author(Strength(NODES, elo), rate)
