"""Endgames that are solved exactly: king and queen or king and rook against a king, and mates
in two moves. White mates; Black's defense is the longest there is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from typing import Literal

import chess
import numpy as np
from numpy.typing import NDArray

from forethought.environments.chess.engine import MATE_SCORE
from forethought.environments.chess.opponent import Choose, Recommendation, random_move

Start = Literal["initial", "kqk", "krk", "mate_in_2"]

EVALUATION_SEEDS = 1 << 61
"""Held-out episodes have seeds from here on (`rollouts/seeding.py`)."""
HELD_OUT_SHARE = 5
"""One position of so many, with all its reflections and rotations, is held out."""

_UNSOLVED = -1
_FREE_SQUARES = 2
"""Only positions in which Black's king may go to at most so many squares are searched for a mate in
two: with more there is hardly ever one."""
_MATERIAL = ("QR", "QB", "QN", "RR", "QQ", "RB", "RN")
_DEFENDERS = ("", "n", "b", "r")

Place = Callable[[np.random.Generator], chess.Board]
Distance = Callable[[chess.Board], int | None]


@dataclass(frozen=True)
class Endgame:
    """One kind of endgame: which positions it begins with, and how far each is from mate.

    As an opponent it plays the longest defense: a move that saves the game where there is one,
    else one that is mated as late as possible, drawn uniformly among equals.
    """

    label: str
    place: Place
    """A position that White wins, White to move, from the random numbers given."""
    distance: Distance
    """White's moves to mate with best play of both sides; 0: Black is mated; None: there is no
    forced mate (in the moves that are left, where the endgame limits them)."""
    most_plies: int = 1000
    """Half-moves of an episode."""
    restarts: int = 0

    def begin(self, seed: int, randomness: np.random.Generator) -> chess.Board:
        """A position of the seed's split: those of the other are drawn again."""
        board = self.place(randomness)
        while is_held_out(board) != (seed >= EVALUATION_SEEDS):
            board = self.place(randomness)
        return board

    def reply(self, board: chess.Board, randomness: np.random.Generator) -> chess.Move:
        """The longest defense."""
        distances = {move: self._after(board, move) for move in board.legal_moves}
        saved = [move for move, distance in distances.items() if distance is None]
        longest = max((distance for distance in distances.values() if distance), default=0)
        moves = saved or [move for move, distance in distances.items() if distance == longest]
        return moves[int(randomness.integers(len(moves)))]

    def advise(self, board: chess.Board) -> Recommendation:
        """White's first move, in a fixed order, that mates soonest; any move where none does."""
        distance = self.distance(board)
        moves = list(board.legal_moves)
        if distance is None:
            return Recommendation(moves[0], 0.0, None)
        best = next(move for move in moves if self._after(board, move) == distance - 1)
        return Recommendation(best, MATE_SCORE - distance, distance)

    def close(self) -> None:
        """There is no process to end."""

    def draw_author(self, skill: float, randomness: np.random.Generator) -> Choose:
        """Who plays White in one game of offline data: the expert, and at a share of the moves a
        beginner, who gives check where that is possible, and moves at random where it is not. The
        beginner's share is uniform from 0 to 2 (1 - skill), at most 1.

        Args:
            skill: the expert's share, on average (from 0.5 on): 0 to 1.
        """
        beginners_share = min(1.0, 2 * (1 - skill) * float(randomness.random()))

        def choose(board: chess.Board) -> chess.Move:
            if randomness.random() >= beginners_share:
                return self.advise(board).move
            checks = [move for move in board.legal_moves if board.gives_check(move)]
            if checks:
                return checks[int(randomness.integers(len(checks)))]
            return random_move(board, randomness)

        return choose

    def _after(self, board: chess.Board, move: chess.Move) -> int | None:
        board.push(move)
        distance = self.distance(board)
        board.pop()
        return distance


@cache
def find_endgame(start: Start) -> Endgame | None:
    """The endgame of this name, its table computed; None for the initial position."""
    if start == "initial":
        return None
    if start == "mate_in_2":
        return Endgame("Chess, mate in 2", _place_mate_in_two, _distance_within_two, 3)
    return _tabled(chess.QUEEN if start == "kqk" else chess.ROOK)


def is_held_out(board: chess.Board) -> bool:
    """Whether a position without pawns is for evaluation alone: a fifth of all, by a digest of the
    first, in the alphabet, of its eight reflections and rotations. So no held-out position is a
    training one seen in a mirror."""
    turned = [board]
    for flip in (chess.flip_diagonal, chess.flip_vertical, chess.flip_horizontal):
        turned += [one.transform(flip) for one in turned]
    first = min(one.board_fen() for one in turned)
    return sha256(first.encode()).digest()[0] % HELD_OUT_SHARE == 0


def name_pieces(board: chess.Board) -> str:
    """The pieces in words: "White: king c3, queen d4. Black: king f6"."""
    sides: list[str] = []
    for color, side in ((chess.WHITE, "White"), (chess.BLACK, "Black")):
        named = (
            f"{chess.piece_name(kind)} {chess.square_name(square)}"
            for kind in range(chess.KING, 0, -1)
            for square in board.pieces(kind, color)
        )
        sides.append(f"{side}: {', '.join(named)}")
    return ". ".join(sides)


# King and piece against king


@dataclass(frozen=True)
class Table:
    """White's moves to mate by [White's king, White's piece, Black's king]; -1: no forced mate,
    or no legal position."""

    white: NDArray[np.int8]
    """[64, 64, 64], White to move."""
    black: NDArray[np.int8]
    """[64, 64, 64], Black to move; 0: mated."""


@cache
def solve(piece: chess.PieceType) -> Table:
    """Retrograde analysis of king and queen, or king and rook, against king: from the mates back,
    a move at a time, until nothing is added. Half a second.

    Each step is a matrix product over the squares that a piece can come to:

        white wins in n:   some move leads to a position of Black's that is lost in n - 1
        Black loses in n:  there is a move, and each one leads to a position that White wins in
                           at most n; capturing the piece never does

    Only White's king can stand between its piece and Black's king, so attacks need no other.
    """
    near, attacks = _king_moves(), _piece_attacks(piece)
    squares = np.arange(64)
    apart = squares[:, None] != squares[None, :]
    kings = ~near & apart
    exists = apart[:, :, None] & apart[None, :, :] & kings[:, None, :]  # Black to move
    quiet = exists & ~attacks  # White to move: Black is not in check
    flees = kings[:, None, :] & ~attacks  # where Black's king may go; [:, piece, piece]: captures
    can_move = _some(flees, near) & exists
    black = np.where(exists & attacks & ~can_move, 0, _UNSOLVED).astype(np.int8)
    white = np.full((64, 64, 64), _UNSOLVED, np.int8)
    for n in range(1, 64):
        lost = black >= 0
        by_king = np.einsum("kj,jpb->kpb", near.astype(np.float32), lost.astype(np.float32))
        by_piece = attacks.astype(np.float32) @ lost.astype(np.float32)
        won = quiet & (white < 0) & ((by_king > 0) | (by_piece > 0))
        white[won] = n
        saved = _some(flees & (white < 0), near)  # where it captures, White has not won
        fallen = exists & (black < 0) & can_move & ~saved
        black[fallen] = n
        if not won.any() and not fallen.any():
            break
    return Table(white, black)


def _some(allowed: NDArray[np.bool_], near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether Black's king, where it is, has a move to a square that is allowed."""
    return allowed.astype(np.float32) @ near.astype(np.float32) > 0


def _king_moves() -> NDArray[np.bool_]:
    """[64, 64]: whether a king comes from one square to the other."""
    masks = chess.BB_KING_ATTACKS
    return np.array([[bool(masks[here] >> there & 1) for there in range(64)] for here in range(64)])


def _piece_attacks(piece: chess.PieceType) -> NDArray[np.bool_]:
    """[king, piece, square]: whether the piece attacks the square past its own king."""
    attacks = np.zeros((64, 64, 64), np.bool_)
    board = chess.Board(None)
    for king in range(64):
        for square in range(64):
            if king == square:
                continue
            board.clear_board()
            board.set_piece_at(king, chess.Piece(chess.KING, chess.WHITE))
            board.set_piece_at(square, chess.Piece(piece, chess.WHITE))
            attacks[king, square, list(board.attacks(square))] = True
            attacks[king, square, king] = False  # no move goes there
    return attacks


def _tabled(piece: chess.PieceType) -> Endgame:
    table = solve(piece)
    won = np.argwhere(table.white > 0)

    def place(randomness: np.random.Generator) -> chess.Board:
        squares = won[int(randomness.integers(len(won)))]
        board = chess.Board(None)
        pieces = ((chess.KING, chess.WHITE), (piece, chess.WHITE), (chess.KING, chess.BLACK))
        for square, (kind, color) in zip(squares, pieces, strict=True):
            board.set_piece_at(int(square), chess.Piece(kind, color))
        return board

    def distance(board: chess.Board) -> int | None:
        found = board.pieces(piece, chess.WHITE)
        if not found:
            return None
        squares = (board.king(chess.WHITE), next(iter(found)), board.king(chess.BLACK))
        moves = int((table.white if board.turn else table.black)[squares])
        return None if moves == _UNSOLVED else moves

    name = chess.piece_name(piece)
    return Endgame(f"Chess, king and {name} against king", place, distance)


# Mates in two


def _place_mate_in_two(randomness: np.random.Generator) -> chess.Board:
    """Two white pieces beside the king and at most one black one on squares at random, until White
    mates in exactly two moves."""
    while True:
        white = _MATERIAL[int(randomness.integers(len(_MATERIAL)))]
        black = _DEFENDERS[int(randomness.integers(len(_DEFENDERS)))]
        symbols = f"kK{white}{black}"
        squares = randomness.permutation(64)[: len(symbols)]
        board = chess.Board(None)
        for symbol, square in zip(symbols, squares, strict=True):
            board.set_piece_at(int(square), chess.Piece.from_symbol(symbol))
        is_likely = _free_squares(board) <= _FREE_SQUARES and board.is_valid()
        if is_likely and _distance_within_two(board) == 2:
            return board


def _free_squares(board: chess.Board) -> int:
    """Squares beside Black's king that nothing white attacks and nothing black holds."""
    king = board.king(chess.BLACK)
    assert king is not None
    around = board.attacks(king) & ~board.occupied_co[chess.BLACK]
    return sum(not board.is_attacked_by(chess.WHITE, square) for square in around)


def _distance_within_two(board: chess.Board) -> int | None:
    """White's moves to mate, of the two that an episode has."""
    return _solve_within_two(board.board_fen(), board.turn, board.fullmove_number)


@lru_cache(1 << 12)
def _solve_within_two(placement: str, turn: chess.Color, move: int) -> int | None:
    board = chess.Board(f"{placement} {'w' if turn else 'b'} - - 0 {move}")
    if turn == chess.BLACK:
        left = 2 - move
        return next((n for n in range(left + 1) if _is_mated(board, n)), None)
    return next((n for n in range(1, 4 - move) if _mates(board, n)), None)


def _mates(board: chess.Board, n: int) -> bool:
    """Whether White, to move, mates in at most n moves, 1 or 2."""
    for move in board.legal_moves:
        if n == 1 and not board.gives_check(move):
            continue
        board.push(move)
        is_mated = _is_mated(board, n - 1)
        board.pop()
        if is_mated:
            return True
    return False


def _is_mated(board: chess.Board, n: int) -> bool:
    """Whether Black, to move, is mated now (n = 0), or after any move within n of White's."""
    if n == 0:
        return board.is_checkmate()
    any_move = False
    for move in board.legal_moves:
        any_move = True
        board.push(move)
        is_mated = _mates(board, n)
        board.pop()
        if not is_mated:
            return False
    return any_move or board.is_check()
