"""A position and its moves as text."""

from collections.abc import Iterable
from typing import Literal

import chess

Notation = Literal["uci", "san"]
Board = Literal["fen", "squares", "pieces"]

EMPTY = "o"
"""An empty square among `squares`: a letter, as pieces are, so that tokenizers keep each square
apart; of points side by side the tiny model's makes one token."""

MARKS = "+#"
"""Check and mate, after a move in SAN. An answer may leave them out."""


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


def write_position(board: chess.Board, style: Board) -> str:
    """fen: one line. squares: eight lines, rank 8 first, one word for each square. pieces: two
    lines, "Ke1 Qd1 …" and "ke8 qd8 …", White's first, each from the king down to the pawns. Below
    squares or pieces comes the rest of the FEN: who moves, castling, en passant, the two clocks."""
    fen = board.fen()
    if style == "fen":
        return fen
    if style == "pieces":
        lines = [_pieces(board, color) for color in (chess.WHITE, chess.BLACK)]
    else:
        lines = [_rank(board, rank) for rank in range(7, -1, -1)]
    return "\n".join((*lines, fen.partition(" ")[2]))


def _rank(board: chess.Board, rank: int) -> str:
    return " ".join(
        piece.symbol() if (piece := board.piece_at(chess.square(file, rank))) else EMPTY
        for file in range(8)
    )


def _pieces(board: chess.Board, color: chess.Color) -> str:
    return " ".join(
        chess.Piece(kind, color).symbol() + chess.square_name(square)
        for kind in range(chess.KING, chess.PAWN - 1, -1)
        for square in board.pieces(kind, color)
    )
