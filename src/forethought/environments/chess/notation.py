"""A position and its moves as text, for agents and for people. Works without the `chess` package:
stored positions can be drawn without."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import chess

Notation = Literal["uci", "san"]
Board = Literal["fen", "squares", "pieces"]

EMPTY = "o"
"""An empty square among `squares`: a letter, as pieces are, so that tokenizers keep each square
apart; of points side by side the tiny model's makes one token."""

MARKS = "+#"
"""Check and mate, after a move in SAN. A response may leave them out."""

PIECES = dict(zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟", strict=True))
_EMPTY_IN_DIAGRAM = "·"
_PLACEMENT = re.compile(r"\b((?:[KQRBNPkqrbnp1-8]{1,8}/){7}[KQRBNPkqrbnp1-8]{1,8}) [wb] ")
_KINDS = range(6, 0, -1)
"""Piece types of the `chess` package from the king down to the pawn."""


def named_move(text: str, moves: Iterable[str], notation: Notation) -> str | None:
    """The move that a text names; in SAN its marks may be left out or wrong."""
    marks = MARKS if notation == "san" else ""
    wanted = text.rstrip(marks)
    return next((move for move in moves if move.rstrip(marks) == wanted), None)


def legal_moves(board: chess.Board, notation: Notation) -> dict[str, chess.Move]:
    """The moves by their text, in a fixed order."""
    if notation == "uci":
        return {move.uci(): move for move in board.legal_moves}
    return {board.san(move): move for move in board.legal_moves}


def read_move(text: str, board: chess.Board, notation: Notation) -> chess.Move | None:
    """The legal move that a text names, or None. Total: any text will do."""
    if notation == "uci":
        return next((move for move in board.legal_moves if move.uci() == text), None)
    by_text = legal_moves(board, "san")
    named = named_move(text, by_text, "san")
    return None if named is None else by_text[named]


def write_move(move: chess.Move, board: chess.Board, notation: Notation) -> str:
    """A legal move as text."""
    return move.uci() if notation == "uci" else board.san(move)


def write_position(board: chess.Board, style: Board, *, with_rest: bool = True) -> str:
    """fen: one line. squares: eight lines, rank 8 first, one word for each square. pieces: two
    lines, "Ke1 Qd1 …" and "ke8 qd8 …", White's first, each from the king down to the pawns.

    Args:
        with_rest: below squares or pieces comes the rest of the FEN: who moves, castling,
            en passant, the two clocks.
    """
    fen = board.fen()
    if style == "fen":
        return fen
    if style == "pieces":
        lines = [_pieces(board, color) for color in (True, False)]
    else:
        lines = [_rank(board, rank) for rank in range(7, -1, -1)]
    return "\n".join((*lines, fen.partition(" ")[2])[: None if with_rest else -1])


def diagram(placement: str) -> str:
    """Eight lines with White below, and the names of the files.

    Args:
        placement: the first field of a FEN, "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR".
    """
    lines: list[str] = []
    for number, rank in zip(range(8, 0, -1), placement.split("/"), strict=True):
        signs = (_EMPTY_IN_DIAGRAM * int(sign) if sign.isdigit() else sign for sign in rank)
        squares = "".join(signs)
        lines.append(f"{number} " + " ".join(PIECES.get(square, square) for square in squares))
    return "\n".join((*lines, "  a b c d e f g h"))


def find_diagram(text: str) -> str | None:
    """The diagram of the first FEN in a text, such as a state's key, or None where there is
    none. Total: any text will do."""
    found = _PLACEMENT.search(text)
    if found is None:
        return None
    widths = (_width(rank) for rank in found.group(1).split("/"))
    return diagram(found.group(1)) if set(widths) == {8} else None


def _rank(board: chess.Board, rank: int) -> str:
    pieces = (board.piece_at(8 * rank + file) for file in range(8))
    return " ".join(EMPTY if piece is None else piece.symbol() for piece in pieces)


def _pieces(board: chess.Board, color: chess.Color) -> str:
    found = ((square, board.piece_at(square)) for square in _squares(board, color))
    return " ".join(
        piece.symbol() + "abcdefgh"[square % 8] + str(square // 8 + 1)
        for square, piece in found
        if piece is not None
    )


def _squares(board: chess.Board, color: chess.Color) -> Iterable[int]:
    """Where this side's pieces are, from the king down to the pawns."""
    return (square for kind in _KINDS for square in board.pieces(kind, color))


def _width(rank: str) -> int:
    return sum(int(sign) if sign.isdigit() else 1 for sign in rank)
