"""Stockfish as the opponent, as weak as asked, and the same whenever it is asked again."""

from dataclasses import dataclass
from functools import cache

import chess
import numpy as np

from forethought.environments.chess.engine import (
    MATE_SCORE,
    Candidate,
    EngineCrashError,
    Search,
    UciProcess,
)
from forethought.environments.chess.opponent import Choose, Recommendation, random_move
from forethought.environments.parts import require_option
from forethought.errors import ConfigError, EnvironmentUnusableError

START_TIMEOUT_S = 20.0
TIMEOUT_S = 10.0
"""Starting takes less than a second, a search milliseconds; silence for so long is a failure.
Two tries fit into the minute after which a worker process is given up."""

OPTIONS = (("Threads", "1"), ("Hash", "1"))
"""One thread, because several would race; one MiB, because it is cleared before every move."""

LOWEST_ELO, HIGHEST_ELO = 1350, 2850
"""What Stockfish 15.1 takes for `UCI_Elo`."""

CANDIDATES = 4
"""Moves among which a weakened engine chooses."""

_PAWN = 35.0
"""Centipawns, as Stockfish 15.1 prints them, of the largest random spread: its internal
value of a pawn in the middle game, 126 of the 361 units that it prints as 100."""


@dataclass(frozen=True)
class Strength:
    """How well Stockfish plays, and nothing about time: that would depend on the machine."""

    nodes: int
    """Most positions per move."""
    elo: int | None = None
    """`UCI_Elo`, 1350 to 2850; None is full strength."""

    def __post_init__(self) -> None:
        require_option(self.nodes >= 1, "nodes", self.nodes, "1 or more")
        is_known = self.elo is None or LOWEST_ELO <= self.elo <= HIGHEST_ELO
        require_option(is_known, "elo", self.elo, f"{LOWEST_ELO} to {HIGHEST_ELO}, or None")

    @property
    def level(self) -> float:
        """Stockfish 15.1's skill level for this Elo, 0 to 20."""
        if self.elo is None:
            return 20.0
        return min(max(((self.elo - 1346.6) / 143.4) ** (1 / 0.806), 0.0), 20.0)


class Stockfish:
    """One engine process, started when it is first needed and again when it fails.

    With `UCI_LimitStrength` the engine itself draws from a generator that it seeds by
    the clock, so no game could be played twice. Here it is asked for its four best moves
    at the depth at which it would choose, and the choice, by the engine's own rule, is
    drawn from the environment's generator.
    """

    label = "Chess"

    def __init__(self, path: str, opponent: Strength, expert: Strength) -> None:
        self._path = path
        self._opponent = opponent
        self._expert = expert
        self._process: UciProcess | None = None
        self.restarts = 0

    @property
    def process_id(self) -> int | None:
        """Process id of the engine, while there is one."""
        return None if self._process is None else self._process.process_id

    def reply(self, board: chess.Board, randomness: np.random.Generator) -> chess.Move:
        """A move of the opponent's strength."""
        return self.choose(board, self._opponent, randomness)

    def choose(
        self, board: chess.Board, strength: Strength, randomness: np.random.Generator
    ) -> chess.Move:
        """A move of this strength. Draws from the generator only where it is weakened."""
        if strength.elo is None:
            search = self._search(board, f"nodes {strength.nodes}", 1)
            return chess.Move.from_uci(search.best)
        depth = 1 + int(strength.level)
        search = self._search(board, f"depth {depth} nodes {strength.nodes}", CANDIDATES)
        weakness = 120 - 2 * strength.level
        chosen = weakened_choice(search.candidates, weakness, randomness)
        return chess.Move.from_uci(chosen.line[0])

    def advise(self, board: chess.Board) -> Recommendation:
        """The expert's move, at full strength."""
        search = self._search(board, f"nodes {self._expert.nodes}", 1)
        found = search.candidates[0]
        sees_mate = found.score > MATE_SCORE / 2
        return Recommendation(
            move=chess.Move.from_uci(search.best),
            score=found.score,
            mate_in=round(MATE_SCORE - found.score) if sees_mate else None,
        )

    def close(self) -> None:
        """Ends the engine; the next question starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _search(self, board: chess.Board, limits: str, lines: int) -> Search:
        """Asks; where the engine crashes or hangs, asks a fresh one, once."""
        try:
            return self._ask(board, limits, lines)
        except EnvironmentUnusableError:
            self.close()
            self.restarts += 1
        try:
            return self._ask(board, limits, lines)
        except EnvironmentUnusableError:
            self.close()
            raise

    def _ask(self, board: chess.Board, limits: str, lines: int) -> Search:
        if self._process is None:
            self._process = UciProcess(
                self._path, OPTIONS, start_timeout_s=START_TIMEOUT_S, timeout_s=TIMEOUT_S
            )
        search = self._process.search(position_of(board), limits, lines)
        for move in (search.best, *(candidate.line[0] for candidate in search.candidates)):
            _require_legal(board, move)
        return search


@cache
def require_uci(path: str) -> str:
    """The path, if an engine is there: the program is started once and let go, so that one that
    is no engine is refused before a game begins. A process asks each program once.

    Raises:
        ConfigError: it does not answer as UCI demands.
    """
    try:
        UciProcess(path, (), start_timeout_s=START_TIMEOUT_S, timeout_s=TIMEOUT_S).close()
    except EnvironmentUnusableError as error:
        raise ConfigError(
            f"stockfish is {path!r} — expected a chess engine that speaks UCI, but {error}; "
            "name the path of one (or play the weaker built-in opponent: opponent=builtin)"
        ) from error
    return path


def position_of(board: chess.Board) -> str:
    """As UCI writes it: the start and all moves, so that the engine knows of repetitions."""
    start = board.root().fen()
    begin = "startpos" if start == chess.STARTING_FEN else f"fen {start}"
    moves = " ".join(move.uci() for move in board.move_stack)
    return f"{begin} moves {moves}" if moves else begin


def weakened_choice(
    candidates: tuple[Candidate, ...], weakness: float, randomness: np.random.Generator
) -> Candidate:
    """How Stockfish 15.1 chooses among its best moves when its strength is limited.

        argmax_i  s_i + (w (s_1 - s_i) + d u_i) / 128

    s_i are the scores, best first; d is s_1 - s_n, but at most a pawn; u_i is uniform over
    the whole numbers from 0 to w - 1. Ties go to the worse move. At w = 120 all but a
    sixteenth of what a move loses is forgiven.

    Args:
        candidates: best first, at least one.
        weakness: w, 120 at level 0 to 80 at level 20.
    """
    best = candidates[0].score
    spread = min(best - candidates[-1].score, _PAWN)
    chosen, highest = candidates[0], -np.inf
    for candidate in candidates:
        drawn = int(randomness.integers(int(weakness)))
        push = (weakness * (best - candidate.score) + spread * drawn) / 128
        if candidate.score + push >= highest:
            chosen, highest = candidate, candidate.score + push
    return chosen


def _require_legal(board: chess.Board, text: str) -> None:
    """An engine's move is looked at before it is believed."""
    try:
        is_legal = chess.Move.from_uci(text) in board.legal_moves
    except ValueError:
        is_legal = False
    if not is_legal:
        raise EngineCrashError(f"the engine played {text!r}, which is illegal in {board.fen()}")


# Games for offline learning: the engine at mixed strengths, which often moves at random

NODES = 1_000
"""Per move, at every strength."""

ELOS = (1350, 1600, 1900, 2200, 2500, None)
"""Equally likely; None is full strength at this number of nodes."""


def draw_author(skill: float, engine: Stockfish, randomness: np.random.Generator) -> Choose:
    """Who plays one game: strength uniform over `ELOS`, share of random moves uniform
    from 0 to 2 (1 - skill), at most 1.

    Args:
        skill: share of moves that the engine makes, on average (from 0.5 on): 0 to 1.
    """
    strength = Strength(NODES, ELOS[int(randomness.integers(len(ELOS)))])
    random_rate = min(1.0, 2 * (1 - skill) * float(randomness.random()))

    def choose(board: chess.Board) -> chess.Move:
        if randomness.random() < random_rate:
            return random_move(board, randomness)
        return engine.choose(board, strength, randomness)

    return choose
