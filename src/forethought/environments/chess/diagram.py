"""A position for people. Needs no package: what was stored can be read without."""

import re

_PLACEMENT = re.compile(r"\b((?:[KQRBNPkqrbnp1-8]{1,8}/){7}[KQRBNPkqrbnp1-8]{1,8}) [wb] ")
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


def find_diagram(text: str) -> str | None:
    """The diagram of the first FEN in a text, such as a state's key, or None where there is
    none. Total: any text will do."""
    found = _PLACEMENT.search(text)
    if found is None:
        return None
    widths = (_width(rank) for rank in found.group(1).split("/"))
    return diagram(found.group(1)) if set(widths) == {8} else None


def _width(rank: str) -> int:
    return sum(int(sign) if sign.isdigit() else 1 for sign in rank)
