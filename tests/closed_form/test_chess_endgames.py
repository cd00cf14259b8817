"""Distances to mate: known facts, and a second computation by the `chess` package's own rules."""

import chess
import numpy as np
import pytest

from forethought.environments.chess.endgames import Endgame, Start, find_endgame, solve


def endgame(start: Start) -> Endgame:
    found = find_endgame(start)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("piece", "longest", "won"),
    [
        pytest.param(chess.QUEEN, 10, 144_508, id="queen"),
        pytest.param(chess.ROOK, 16, 175_168, id="rook"),
    ],
)
def test_known_facts(piece: chess.PieceType, longest: int, won: int) -> None:
    """The longest mates take 10 and 16 moves, as every endgame table has it; all positions with
    White to move are won, and these are their numbers."""
    table = solve(piece)
    assert table.white.max() == table.black.max() == longest
    assert (table.white > 0).sum() == won
    kings = [(king, there) for king in range(64) for there in range(64)]
    apart = [pair for pair in kings if chess.square_distance(*pair) > 1]
    assert len(apart) == 3_612  # places of two kings; the rest is attacked or occupied


@pytest.mark.parametrize("start", ["kqk", "krk"])
def test_each_distance_follows_from_those_a_move_later(start: Start) -> None:
    """White: one more than the least after its moves. Black: the most after its moves, if each of
    them loses; 0 where it is mated."""
    kind, randomness = endgame(start), np.random.default_rng(0)
    for _ in range(60):
        board = kind.place(randomness)
        assert board.is_valid()
        distance = kind.distance(board)
        later: list[int | None] = []
        for move in board.legal_moves:
            board.push(move)
            later.append(kind.distance(board))
            replies: list[int | None] = []
            for reply in board.legal_moves:
                board.push(reply)
                replies.append(kind.distance(board))
                board.pop()
            if not replies:
                assert later[-1] == (0 if board.is_checkmate() else None)
            elif None in replies:
                assert later[-1] is None
            else:
                assert later[-1] == max(moves for moves in replies if moves is not None)
            board.pop()
        assert distance == 1 + min(moves for moves in later if moves is not None)


@pytest.mark.parametrize(
    ("fen", "distance"),
    [
        pytest.param("k7/8/1K6/8/8/8/7Q/8 w - - 0 1", 1, id="Qh8"),
        pytest.param("k7/8/1K6/8/8/8/7Q/8 b - - 0 1", None, id="stalemate: Black has no move"),
        pytest.param("k6Q/8/1K6/8/8/8/8/8 b - - 0 1", 0, id="mated"),
        pytest.param("8/8/8/8/8/1k6/Q7/4K3 b - - 0 1", None, id="the queen is lost"),
    ],
)
def test_distances_that_a_reader_sees(fen: str, distance: int | None) -> None:
    assert endgame("kqk").distance(chess.Board(fen)) == distance


def mates_by_force(board: chess.Board, moves: int) -> bool:
    """White's forced mate, by nothing but trying."""
    for move in list(board.legal_moves):
        board.push(move)
        is_mate = board.is_checkmate()
        if not is_mate and moves > 1 and not board.is_game_over():
            is_mate = True
            for reply in list(board.legal_moves):
                board.push(reply)
                is_mate = is_mate and mates_by_force(board, moves - 1)
                board.pop()
        board.pop()
        if is_mate:
            return True
    return False


def test_a_mate_in_two_takes_two_moves() -> None:
    kind, randomness = endgame("mate_in_2"), np.random.default_rng(1)
    for _ in range(8):
        board = kind.place(randomness)
        assert board.is_valid()
        assert not mates_by_force(board, 1)
        assert mates_by_force(board, 2)
        board.push(kind.advise(board).move)
        for reply in list(board.legal_moves):
            board.push(reply)
            assert mates_by_force(board, 1)
            board.pop()
