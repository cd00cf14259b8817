"""A position for people. Needs no package: also for reading what was stored."""

PIECES = dict(zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟", strict=True))
_EMPTY = "·"


def diagram(placement: str) -> str:
    """Eight lines with White below, and the names of the files.

    Args:
        placement: the first field of a FEN, "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR".
    """
    lines: list[str] = []
    for number, rank in zip(range(8, 0, -1), placement.split("/"), strict=True):
        squares = "".join(_EMPTY * int(sign) if sign.isdigit() else sign for sign in rank)
        lines.append(f"{number} " + " ".join(PIECES.get(square, square) for square in squares))
    return "\n".join((*lines, "  a b c d e f g h"))
