"""Who plays the other side and advises this one; and the built-in opponent, a small one of our own
for machines without Stockfish: weaker, and labeled so."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import chess
import numpy as np

OPPONENT_DEPTH = 1
"""Half-moves that the opponent looks ahead, before captures are played out."""
EXPERT_DEPTH = 2

_MATE = 10_000
_VALUES = (0, 100, 320, 330, 500, 900, 0)
"""Centipawns, by piece type: pawn, knight, bishop, rook, queen, king (from 1)."""

_SPREAD = 30
"""Centipawns that are added at random to the opponent's first moves, at most."""

_CENTER = (0, 1, 2, 3, 3, 2, 1, 0)
"""How near a file or a rank is to the middle."""


class Recommendation(NamedTuple):
    """The move that the stronger player would make, and why."""

    move: chess.Move
    score: float
    """Centipawns, for the side to move."""
    mate_in: int | None
    """Own moves to a forced mate, or None where none is seen."""

    def describe(self) -> str:
        """What the expert thinks of the position, in words."""
        if self.mate_in is not None:
            return f"I mate in {self.mate_in}"
        pawns = abs(self.score) / 100
        if pawns < 0.5:
            return "the game is even"
        return f"I am {pawns:.1f} pawns {'ahead' if self.score > 0 else 'behind'}"


class Opponent(Protocol):
    """A player. What it does is a function of the game so far and of the random numbers
    given, and of nothing that happened before: a lost game is restored by replay."""

    @property
    def label(self) -> str:
        """The kind of task, as results name it."""
        ...

    @property
    def restarts(self) -> int:
        """How often an engine had to be started again since this player was built."""
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

    def close(self) -> None:
        """Ends what the player holds open."""
        ...


Choose = Callable[[chess.Board], chess.Move]
"""The moves of whoever plays one game of offline data."""


def random_move(board: chess.Board, randomness: np.random.Generator) -> chess.Move:
    """A legal move, uniform."""
    moves = list(board.legal_moves)
    return moves[int(randomness.integers(len(moves)))]


def _square_values() -> tuple[tuple[int, ...], ...]:
    """What a white piece is worth on each square, by piece type: centipawns."""
    tables = [(0,) * 64]
    for piece in range(chess.PAWN, chess.KING + 1):
        table: list[int] = []
        for square in range(64):
            file, rank = square % 8, square // 8
            center = _CENTER[file] + _CENTER[rank]
            bonus = {
                chess.PAWN: 8 * (rank - 1) + 2 * center,
                chess.KNIGHT: 8 * center - 20,
                chess.BISHOP: 4 * center - 8,
                chess.ROOK: 15 if rank == 6 else 2 * _CENTER[file],
                chess.QUEEN: 2 * center,
                chess.KING: -6 * center - 10 * min(rank, 3),
            }[piece]
            table.append(_VALUES[piece] + bonus)
        tables.append(tuple(table))
    return tuple(tables)


_TABLES = _square_values()
_EDGE = tuple(-25 * (_CENTER[square % 8] + _CENTER[square // 8]) for square in range(64))
"""Distance of a lone king from the edge: -150 in the middle, 0 in a corner."""


def evaluate(board: chess.Board) -> int:
    """Material and squares, in centipawns, for the side to move."""
    totals = [0, 0]
    for color in (chess.WHITE, chess.BLACK):
        for piece in range(chess.PAWN, chess.KING + 1):
            for square in board.pieces(piece, color):
                totals[color] += _worth(piece, square, color)
    return totals[board.turn] - totals[not board.turn]


def _worth(piece: chess.PieceType, square: chess.Square, color: chess.Color) -> int:
    return _TABLES[piece][square if color else square ^ 56]


def _gain(board: chess.Board, move: chess.Move) -> int:
    """What a move adds to the mover's side of `evaluate`; a castling rook is left out."""
    piece = board.piece_type_at(move.from_square)
    assert piece is not None
    to, color = move.to_square, board.turn
    gain = _worth(move.promotion or piece, to, color) - _worth(piece, move.from_square, color)
    taken = board.piece_type_at(to)
    if taken is not None:
        return gain + _worth(taken, to, not color)
    if piece == chess.PAWN and to == board.ep_square:
        return gain + _worth(chess.PAWN, to + (-8 if color else 8), not color)
    return gain


def _hunt(board: chess.Board) -> int:
    """For the side to move: a king that is alone is driven to the edge, the other king
    comes near. So the side that is ahead finds a mate that it cannot see yet."""
    total = 0
    for color, sign in ((board.turn, -1), (not board.turn, 1)):
        king, other = board.king(color), board.king(not color)
        if board.occupied_co[color].bit_count() == 1 and king is not None and other is not None:
            apart = abs(king % 8 - other % 8) + abs(king // 8 - other // 8)
            total += sign * (_EDGE[king] - 8 * apart)
    return total


class Builtin:
    """Alpha-beta of fixed depth; captures are then played out."""

    label = "Chess, built-in opponent"
    restarts = 0

    def reply(self, board: chess.Board, randomness: np.random.Generator) -> chess.Move:
        """The best move at `OPPONENT_DEPTH`, small random numbers added to the scores."""
        drawn = randomness.integers(_SPREAD, size=board.legal_moves.count())
        return best_move(board, OPPONENT_DEPTH, tuple(int(extra) for extra in drawn))[0]

    def advise(self, board: chess.Board) -> Recommendation:
        """The best move at `EXPERT_DEPTH`."""
        move, score = best_move(board, EXPERT_DEPTH)
        sees_mate = score > _MATE // 2
        return Recommendation(
            move=move,
            score=float(score),
            mate_in=(_MATE - score + 1) // 2 if sees_mate else None,
        )

    def close(self) -> None:
        """There is no process to end."""


def best_move(
    board: chess.Board, depth: int, extras: tuple[int, ...] = ()
) -> tuple[chess.Move, int]:
    """The move with the best score for the side to move, and that score in centipawns.

    Args:
        depth: half-moves to look ahead, 1 or more.
        extras: added to the score of each legal move, in their order.
    """
    board = board.copy()
    standing = evaluate(board)
    moves = list(board.legal_moves)
    extra_of = dict(zip(moves, extras, strict=True)) if extras else dict.fromkeys(moves, 0)
    best, highest = moves[0], -2 * _MATE
    for gain, move in _in_order(board, moves):
        board.push(move)
        high = 2 * _MATE
        score = -_search(board, depth - 1, -high, extra_of[move] - highest, -standing - gain, 1)
        board.pop()
        if score + extra_of[move] > highest:
            best, highest = move, score + extra_of[move]
    return best, highest


def _in_order(board: chess.Board, moves: Iterable[chess.Move]) -> list[tuple[int, chess.Move]]:
    """What moves gain, most first."""
    return sorted(((_gain(board, move), move) for move in moves), key=lambda pair: -pair[0])


def _search(board: chess.Board, depth: int, low: int, high: int, standing: int, ply: int) -> int:
    """Negamax within the window (low, high), centipawns for the side to move.

    Args:
        standing: `evaluate` of this position.
        ply: half-moves from the root, for nearer mates to count more.
    """
    if ply == 1 and (board.is_repetition(2) or board.is_insufficient_material()):
        return 0
    if depth == 0:
        return _quiet(board, low, high, standing, ply)
    moves = list(board.legal_moves)
    if not moves:
        return ply - _MATE if board.is_check() else 0
    for gain, move in _in_order(board, moves):
        board.push(move)
        score = -_search(board, depth - 1, -high, -low, -standing - gain, ply + 1)
        board.pop()
        if score >= high:
            return score
        low = max(low, score)
    return low


def _quiet(board: chess.Board, low: int, high: int, standing: int, ply: int) -> int:
    """As it stands, or after captures that win something."""
    if not any(board.generate_legal_moves()):
        return ply - _MATE if board.is_check() else 0
    value = standing + _hunt(board)
    if value >= high:
        return value
    low = max(low, value)
    for gain, move in _in_order(board, board.generate_legal_captures()):
        if value + gain <= low:
            break  # not even the piece for nothing would help
        board.push(move)
        score = -_quiet(board, -high, -low, -standing - gain, ply + 1)
        board.pop()
        if score >= high:
            return score
        low = max(low, score)
    return low
