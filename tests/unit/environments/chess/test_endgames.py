"""Endgames: won at the start, defended as long as possible, and never the same in both splits."""

import json

import chess
import numpy as np
import pytest

from forethought.environments import make_environment
from forethought.environments.chess.endgames import (
    EVALUATION_SEEDS,
    Start,
    find_endgame,
    is_held_out,
)
from forethought.environments.chess.game import Chess
from forethought.environments.contract import Transition
from forethought.errors import ConfigError

ENDGAMES: tuple[Start, ...] = ("kqk", "krk", "mate_in_2")
each_start = pytest.mark.parametrize("start", ENDGAMES)


def board_of(environment: Chess) -> chess.Board:
    return chess.Board(environment.observation().state_key.partition(" seen ")[0])


@each_start
def test_the_expert_wins_in_as_many_moves_as_it_says(start: Start) -> None:
    environment = Chess(start, ply_limit=40)
    kind = find_endgame(start)
    assert kind is not None
    for seed in range(12):
        environment.reset(seed)
        distance = kind.distance(board_of(environment))
        assert distance is not None
        for left in range(distance, 0, -1):
            expert = environment.expert()
            (thoughts,) = (json.loads(text) for name, text in expert.fields if name == "thoughts")
            assert thoughts.endswith(f". I mate in {left}, so I choose {expert.action}")
            transition = environment.step(expert.action)
            assert transition == Transition(float(left == 1), left == 1, False)
        assert environment.success()
        assert environment.ceiling.success_rate == 1.0


@each_start
def test_no_held_out_position_is_a_training_one_in_a_mirror(start: Start) -> None:
    environment = Chess(start)
    n = 6 if start == "mate_in_2" else 60
    trained, held_out = (
        {chess.Board(environment.reset(first + seed).text).board_fen() for seed in range(n)}
        for first in (0, EVALUATION_SEEDS)
    )
    assert all(is_held_out(chess.Board(f"{fen} w - - 0 1")) for fen in held_out)
    flips = (chess.flip_vertical, chess.flip_horizontal, chess.flip_diagonal)
    turned = {fen: chess.Board(f"{fen} w - - 0 1") for fen in trained}
    for board in turned.values():
        assert not any(is_held_out(board.transform(flip)) for flip in flips)
    assert not trained & held_out


def test_a_fifth_of_the_positions_is_held_out() -> None:
    kind, randomness = find_endgame("kqk"), np.random.default_rng(0)
    assert kind is not None
    share = np.mean([is_held_out(kind.place(randomness)) for _ in range(1000)])
    assert 0.14 < share < 0.26


def test_the_pieces_are_named() -> None:
    environment = Chess("kqk", board="pieces", notation="san")
    text = environment.reset(0).text
    assert text is not None
    white, black = text.split("\n")
    (king, queen), (their_king,) = white.split(), black.split()
    (thoughts,) = (json.loads(text) for _, text in environment.expert().fields)
    assert thoughts.startswith(
        f"White: king {king[1:]}, queen {queen[1:]}. Black: king {their_king[1:]}. I mate in "
    )


@pytest.mark.parametrize(
    ("fen", "allowed"),
    [
        pytest.param("8/8/8/8/8/8/1k1Q4/7K b - - 0 1", {"b2a1", "b2b1", "b2a3", "b2b3"}, id="lost"),
        pytest.param("8/8/8/8/8/8/1kQ5/7K b - - 0 1", {"b2c2"}, id="takes the queen"),
        pytest.param("7k/5K2/6R1/8/8/8/8/8 b - - 0 1", {"h8h7"}, id="only move"),
    ],
)
def test_the_longest_defense(fen: str, allowed: set[str]) -> None:
    """Of the moves that lose, one that loses latest; one that saves the game before all."""
    kind = find_endgame("krk" if "R" in fen else "kqk")
    assert kind is not None
    board = chess.Board(fen)
    replies = {kind.reply(board, np.random.default_rng(seed)) for seed in range(40)}
    assert {move.uci() for move in replies} <= allowed
    after = dict[chess.Move, int | None]()
    for move in list(board.legal_moves):
        board.push(move)
        after[move] = kind.distance(board)
        board.pop()
    if None in after.values():
        assert all(after[move] is None for move in replies)
    else:
        longest = max(moves for moves in after.values() if moves is not None)
        assert replies == {move for move in after if after[move] == longest}


def test_a_mate_in_two_that_is_missed_is_cut_after_three_half_moves() -> None:
    environment = Chess("mate_in_2")
    kind = find_endgame("mate_in_2")
    assert kind is not None
    for seed in range(5):
        environment.reset(seed)
        board = board_of(environment)
        wrong = next(move for move in board.legal_moves if not _keeps_the_mate(board, move))
        first = environment.step(wrong.uci())
        if first.terminated:
            continue  # stalemate, or a piece is gone
        expert = environment.expert()
        assert "the game is even, so" in dict(expert.fields)["thoughts"]
        assert environment.step(expert.action) in {(0.0, False, True), (0.0, True, False)}
        assert not environment.success()


def _keeps_the_mate(board: chess.Board, move: chess.Move) -> bool:
    kind = find_endgame("mate_in_2")
    assert kind is not None
    after = board.copy()
    after.push(move)
    return kind.distance(after) is not None


@pytest.mark.parametrize("skill", [0.0, 1.0])
def test_the_data_policy_is_the_expert_and_a_beginner(skill: float) -> None:
    """At skill 1 the expert alone; at 0, where the beginner's share is 1 in half of the games, a
    check wherever there is one."""
    environment = Chess("kqk", ply_limit=30)
    checks = moves = 0
    for seed in range(20):
        environment.reset(seed)
        policy = environment.data_policy(skill, np.random.default_rng(seed))
        is_over = False
        while not is_over:
            board = board_of(environment)
            action = policy().action
            assert skill < 1 or action == environment.expert().action
            can_check = any(board.gives_check(move) for move in board.legal_moves)
            checks += board.gives_check(chess.Move.from_uci(action))
            moves += can_check
            _, terminated, truncated = environment.step(action)
            is_over = terminated or truncated
        assert environment.success() or skill < 1
    assert checks <= moves
    assert skill > 0 or checks > 0.8 * moves


def test_no_engine_is_needed_and_black_is_refused() -> None:
    environment = make_environment("Chess", start="krk", stockfish="/no/engine")
    assert environment.reset(0).task_type == "Chess, king and rook against king"
    with pytest.raises(ConfigError, match="color is 'black' — expected white"):
        Chess("krk", color="black")
    with pytest.raises(ConfigError, match="start is 'kbk' — expected initial or kqk or krk or"):
        Chess("kbk")  # type: ignore[arg-type]


def test_stalemate_earns_nothing() -> None:
    environment = Chess("kqk")
    seed = next(seed for seed in range(400) if _stalemates(environment, seed))
    environment.reset(seed)
    (move, *_) = _stalemates(environment, seed)
    assert environment.step(move) == Transition(0.0, True, False)
    assert not environment.success()


def _stalemates(environment: Chess, seed: int) -> list[str]:
    environment.reset(seed)
    board, found = board_of(environment), list[str]()
    for move in list(board.legal_moves):
        board.push(move)
        found += [move.uci()] if board.is_stalemate() else []
        board.pop()
    return found
