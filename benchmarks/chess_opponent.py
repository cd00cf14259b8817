"""Is the Chess environment's seeded opponent as strong as the engine's own limited strength?

    python benchmarks/chess_opponent.py --positions 16 --draws 100 --games 100

The engine limits itself by `UCI_LimitStrength` at 1,000 nodes, draws by its clock, and keeps
its memory within a game; the `chess` package's own client asks it. Two questions. How far
apart are the moves that both choose in a position (total variation; beside it that of two
samples of our own, which is chance)? Who wins, colors taken in turn?
"""

import argparse
from collections import Counter

import chess
import chess.engine
import numpy as np

from forethought.environments.chess.engine import require_stockfish
from forethought.environments.chess.game import OPPONENT
from forethought.environments.chess.stockfish import Stockfish

LIMITS = chess.engine.Limit(nodes=OPPONENT.nodes)
LONGEST = 300
"""Half-moves after which a game counts as drawn."""


def engine() -> chess.engine.SimpleEngine:
    """Stockfish that limits its own strength."""
    own = chess.engine.SimpleEngine.popen_uci(require_stockfish(), timeout=60.0)
    own.configure({"Threads": 1, "UCI_LimitStrength": True, "UCI_Elo": OPPONENT.elo})
    return own


def move(own: chess.engine.SimpleEngine, board: chess.Board, game: object) -> chess.Move:
    """What the engine plays; a new `game` is one of which it remembers nothing."""
    played = own.play(board, LIMITS, game=game).move
    assert played is not None
    return played


def position(ours: Stockfish, randomness: np.random.Generator) -> chess.Board:
    """From a game of our opponent against itself, with two moves or more to choose from."""
    while True:
        board = chess.Board()
        for _ in range(int(randomness.integers(2, 60))):
            board.push(ours.choose(board, OPPONENT, randomness))
            if board.is_game_over():
                break
        if board.legal_moves.count() > 1 and not board.is_game_over():
            return board


def distance(one: Counter[str], other: Counter[str]) -> float:
    """Total variation between two samples of one size."""
    return sum(abs(one[move] - other[move]) for move in one | other) / (2 * one.total())


def compare_moves(ours: Stockfish, positions: int, draws: int) -> None:
    """Prints the mean distances over positions."""
    randomness, own = np.random.default_rng(0), engine()
    apart: list[float] = []
    chance: list[float] = []
    for _ in range(positions):
        board = position(ours, randomness)
        theirs = Counter(move(own, board, object()).uci() for _ in range(draws))
        samples = [
            Counter(ours.choose(board, OPPONENT, randomness).uci() for _ in range(draws))
            for _ in range(2)
        ]
        apart.append(distance(theirs, samples[0]))
        chance.append(distance(*samples))
    own.quit()
    print(f"{positions} positions, {draws} draws each: mean total variation")
    print(f"  engine and ours  {np.mean(apart):.3f}, largest {max(apart):.2f}")
    print(f"  ours and ours    {np.mean(chance):.3f}, largest {max(chance):.2f}")


def compare_strength(ours: Stockfish, games: int) -> None:
    """Prints who won."""
    results: Counter[str] = Counter()
    own = engine()
    for number in range(games):
        randomness, board = np.random.default_rng(number), chess.Board()
        ours_plays = chess.WHITE if number % 2 == 0 else chess.BLACK
        while not board.is_game_over() and board.ply() < LONGEST:
            if board.turn == ours_plays:
                board.push(ours.choose(board, OPPONENT, randomness))
            else:
                board.push(move(own, board, number))
        outcome = board.outcome()
        winner = None if outcome is None else outcome.winner
        results["draws" if winner is None else "ours" if winner == ours_plays else "engine"] += 1
    own.quit()
    print(f"{games} games: {dict(results)}")


def main() -> None:
    """Measures both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--positions", type=int, default=16)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--games", type=int, default=100)
    settings = parser.parse_args()
    ours = Stockfish(require_stockfish(), OPPONENT, OPPONENT)
    compare_moves(ours, settings.positions, settings.draws)
    compare_strength(ours, settings.games)
    ours.close()


if __name__ == "__main__":
    main()
