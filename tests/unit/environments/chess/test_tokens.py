"""What `board=squares` and `board=pieces` are for: a square, or a piece with its square, is one
token; with moves in SAN a move nearly always is."""

import random

import chess

from forethought.environments.chess.notation import Board, write_position
from forethought.models.tiny import train_tokenizer


def positions() -> list[chess.Board]:
    """Of games at random."""
    choices, found = random.Random(0), list[chess.Board]()
    for _ in range(10):
        board = chess.Board()
        while not board.is_game_over() and board.ply() < 60:
            board.push(choices.choice(list(board.legal_moves)))
            found.append(board.copy())
    return found


def test_a_square_is_a_token_in_its_place() -> None:
    boards = positions()
    lengths: dict[Board, set[int]] = {"fen": set(), "squares": set()}
    for style, found in lengths.items():
        texts = [write_position(board, style) for board in boards]
        tokenizer = train_tokenizer(texts)
        for text in texts:
            lines = text.split("\n")
            placement = "\n".join(lines[:8]) if style == "squares" else text.split()[0]
            found.add(len(tokenizer(placement)["input_ids"]))
    assert lengths["squares"] == {64 + 7}  # and the ends of seven lines
    assert len(lengths["fen"]) > 10


def test_a_piece_and_its_square_are_a_token() -> None:
    boards = positions()
    texts = [write_position(board, "pieces") for board in boards]
    tokenizer = train_tokenizer(texts * 2)  # a word must be met twice
    for board, text in zip(boards, texts, strict=True):
        placement = text.rpartition("\n")[0]
        ids = tokenizer(placement)["input_ids"]
        assert len(ids) == len(board.piece_map()) + 1  # and the end of a line


def test_both_sides_are_told_from_the_king_down() -> None:
    board = chess.Board("4k3/1p6/8/8/8/8/6P1/R3K2n b Q - 3 40")
    assert write_position(board, "pieces") == "Ke1 Ra1 Pg2\nke8 nh1 pb7\nb Q - 3 40"


def test_a_move_in_san_is_a_token() -> None:
    boards = positions()
    moves = [board.san(move) for board in boards for move in board.legal_moves]
    tokenizer = train_tokenizer([f'"{move}"' for move in moves] * 2)
    lengths = [len(tokenizer(move.rstrip("+#"))["input_ids"]) for move in moves]
    assert sum(length == 1 for length in lengths) > 0.95 * len(lengths)
