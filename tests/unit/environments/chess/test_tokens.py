"""What `board=squares` is for: every square is one token, always at the same place."""

import random

import chess

from forethought.environments.chess.notation import Board, write_position
from forethought.policies.tiny import train_tokenizer


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
