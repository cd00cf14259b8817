"""Chess: checkmate an engine of limited strength."""

import json
from collections.abc import Sequence
from typing import Literal, get_args

import chess
import numpy as np

from forethought.environments.chess.endgames import Start, find_endgame, name_pieces
from forethought.environments.chess.engine import PROGRAM, require_stockfish
from forethought.environments.chess.notation import (
    Board,
    Notation,
    diagram,
    legal_moves,
    named_move,
    read_move,
    write_move,
    write_position,
)
from forethought.environments.chess.opponent import (
    Builtin,
    Opponent,
    random_move,
)
from forethought.environments.chess.stockfish import (
    Stockfish,
    Strength,
    draw_author,
    require_uci,
)
from forethought.environments.contract import Ceiling, DataPolicy, ExpertAction, Transition
from forethought.environments.parts import is_flag, require_option, require_whole_number
from forethought.errors import ConfigError
from forethought.types import Metric, Observation

OnIllegal = Literal["stay", "lose", "random"]

OPPONENT = Strength(nodes=1_000, elo=1350)
"""The weakest that Stockfish 15.1 offers; LMRL-Gym's 1200 is below its range."""
EXPERT = Strength(nodes=2_000)
RANDOM_RATE = 0.05
"""Share of the opponent's moves that are drawn uniformly from the legal ones."""

PENALTY = -1.0
"""For an illegal move, or a text that is no move."""

_SHOWN = 8
"""Characters of an illegal response that the next observation repeats."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#=-")

_CEILINGS = {
    "stockfish": Ceiling(1.0, "estimated: the expert won 300 of 300 games"),
    "builtin": Ceiling(1.0, "estimated: the expert won 20 of 20 games"),
    "endgame": Ceiling(1.0, "exact: every position is won, by retrograde analysis or search"),
}


class Chess:
    """Checkmate an engine of limited strength.

    Description: FIDE's rules from the `chess` package. The opponent is Stockfish at
    `UCI_Elo` 1350 and at most 1,000 nodes, which moves at random 1 time in 20; LMRL-Gym's
    and Q-SFT's task, whose opponent has Elo 1200. Nothing is limited by time. Or an endgame
    (`start`), which is won: there the opponent plays the longest defense, and no engine is needed.

    Observation: the position as text; no image. In an endgame squares and pieces come without the
    rest of the FEN, which says nothing there.

    Actions: one move, as text: `e2e4` (UCI) or `e4` (SAN). Any text is a response.

    Rewards: +1 for the move that checkmates, -1 for an illegal move or a text that is no
    move, 0 otherwise: a draw and a loss are worth 0 alike.

    Start: the initial position; with `color="black"` after the opponent's first move. In an
    endgame a random position that White, the agent, wins: king and queen (kqk) or king and rook
    (krk) against a king, uniform over all of them, or a mate in exactly two moves of three to five
    pieces (mate_in_2). A fifth of the positions, with all their reflections, is dealt to held-out
    seeds alone.

    End: terminated by checkmate, stalemate, insufficient material, the fifth repetition,
    75 moves without capture or pawn move, and with the last illegal move that is allowed;
    truncated after `ply_limit` half-moves, and a mate in two after three.

    Success: the opponent is checkmated.

    Ceiling: about 100 %, estimated by the expert, Stockfish at full strength with 2,000
    nodes: it won 300 of 300 games, 95 % interval 98.7 to 100. Endgames: 100 %, exact, if
    `ply_limit` leaves room for the longest mates: 10 moves (kqk) and 16 (krk).

    Arguments:
        start: "initial", "kqk", "krk" or "mate_in_2"; in the last three the agent has White.
        opponent: from the initial position: "stockfish", or "builtin", a small player of our
            own, weaker, for machines without an engine. Results name it in the task type.
        stockfish: name or path of the engine's program. The strengths above are those of
            version 15.1.
        color: of the agent, "white" or "black".
        notation: "uci" or "san", of responses and of legal moves.
        board: "fen", "squares", a word for each square, or "pieces", a word for each piece.
        legal_moves: whether the observation lists them as its admissible actions.
        on_illegal: after an illegal move, "stay": the agent tries again; "lose": the game
            ends; "random": a random legal move is played in its place.
        illegal_limit: the illegal move of this number ends the game, 1 to 100.
        ply_limit: half-moves of both sides after which the game is cut, 2 to 1,000.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        start: Start = "initial",
        opponent: Literal["stockfish", "builtin"] = "stockfish",
        stockfish: str = PROGRAM,
        color: Literal["white", "black"] = "white",
        notation: Notation = "uci",
        board: Board = "fen",
        legal_moves: bool = False,
        on_illegal: OnIllegal = "stay",
        illegal_limit: int = 5,
        ply_limit: int = 200,
    ) -> None:
        _require_one_of(get_args(Start), "start", start)
        _require_one_of(("stockfish", "builtin"), "opponent", opponent)
        colors = ("white", "black") if start == "initial" else ("white",)
        _require_one_of(colors, "color", color)
        _require_one_of(get_args(Notation), "notation", notation)
        _require_one_of(get_args(Board), "board", board)
        require_option(is_flag(legal_moves), "legal_moves", legal_moves, "True or False")
        _require_one_of(get_args(OnIllegal), "on_illegal", on_illegal)
        require_whole_number("illegal_limit", illegal_limit, 1, 100)
        require_whole_number("ply_limit", ply_limit, 2, 1000)
        self._endgame = find_endgame(start)
        self._opponent = self._endgame or _opponent_of(opponent, stockfish)
        self._ceiling = _CEILINGS["endgame" if self._endgame else opponent]
        self._agent = chess.WHITE if color == "white" else chess.BLACK
        self._notation: Notation = notation
        self._style: Board = board
        self._lists_moves = legal_moves
        self._on_illegal = on_illegal
        self._illegal_limit = illegal_limit
        self._ply_limit = min(ply_limit, self._endgame.most_plies) if self._endgame else ply_limit
        self._board = chess.Board()
        self._illegal = 0
        self._tried: tuple[str, ...] = ()
        self._is_over = True
        self._key = 0
        self._restarts_before = 0

    @property
    def actions(self) -> None:
        """Open text: any text is a response, and most are illegal."""
        return None

    @property
    def ceiling(self) -> Ceiling:
        """What the expert reaches."""
        return self._ceiling

    def reset(self, seed: int) -> Observation:
        """Begins the game of this seed; as Black, after the opponent's first move."""
        self.np_random = np.random.default_rng(seed)
        self._begin(seed)
        return self.observation()

    def observation(self) -> Observation:
        """The position, and the illegal moves tried in it."""
        text = self._text()
        return Observation(
            text=text,
            image=None,
            admissible_actions=self._listed_moves() if self._lists_moves else None,
            state_key=self._state_key(),
            goal=self._goal(),
            task_type=self._opponent.label,
        )

    def step(self, action: str) -> Transition:
        """Plays the agent's move and the opponent's, or counts an illegal one."""
        if self._is_over:
            raise RuntimeError("the game is over — restart it with a seed before acting")
        move = read_move(action, self._board, self._notation)
        reward = 0.0
        if move is None:
            move, is_lost = self._penalize(action)
            reward = PENALTY
            if move is None:
                self._is_over = is_lost
                return Transition(reward, is_lost, False)
        return self._play(move, reward)

    def legal_actions(self) -> tuple[str, ...]:
        """The legal moves, in the notation of the actions."""
        return () if self._is_over else tuple(legal_moves(self._board, self._notation))

    def expert(self) -> ExpertAction:
        """The expert's move, with its opinion of the position."""
        if self._is_over:
            raise RuntimeError("the game is over — restart it with a seed before asking")
        found = self._opponent.advise(self._board)
        action = write_move(found.move, self._board, self._notation)
        seen = "" if self._endgame is None else f"{name_pieces(self._board)}. "
        thought = f"{seen}{found.describe()}, so I choose {action}"
        return ExpertAction(action, (("thoughts", json.dumps(thought)),))

    def resolve_action(self, text: str, admissible: Sequence[str]) -> str | None:
        """The listed move that a text names; in SAN its marks may be left out."""
        return named_move(text, admissible, self._notation)

    def success(self) -> bool:
        """Whether the opponent is checkmated."""
        return self._board.is_checkmate() and self._board.turn != self._agent

    def metrics(self) -> tuple[Metric, ...]:
        """Illegal moves; whether the game was lost on the board or drawn; half-moves; how
        often the engine had to be started again."""
        is_mated = self._board.is_checkmate() and self._board.turn == self._agent
        is_drawn = not self._board.is_checkmate() and self._board.is_game_over()
        return (
            Metric("illegal_moves", float(self._illegal)),
            Metric("mated", float(is_mated)),
            Metric("drawn", float(is_drawn)),
            Metric("half_moves", float(self._board.ply())),
            Metric("engine_restarts", float(self._opponent.restarts - self._restarts_before)),
        )

    def close(self) -> None:
        """Ends the engine, where there is one."""
        self._opponent.close()

    @property
    def data_skill(self) -> float:
        """Mean return about 0.21, the published data's; endgames: half of the moves are perfect."""
        return 0.65 if self._endgame is None else 0.5

    def data_policy(self, skill: float, randomness: np.random.Generator) -> DataPolicy:
        """Stockfish at mixed strengths, with mixed shares of random moves; in endgames the expert,
        with mixed shares of a beginner's moves.

        Args:
            skill: as `draw_author` takes it, of `stockfish` and of `endgames`, 0 to 1.

        Raises:
            ConfigError: a skill beyond that, or the built-in opponent.
        """
        if not 0 <= skill <= 1:
            raise ConfigError(f"skill is {skill:g} — Chess expected 0 to 1")
        if self._endgame is not None:
            choose = self._endgame.draw_author(skill, randomness)
        elif isinstance(self._opponent, Stockfish):
            choose = draw_author(skill, self._opponent, randomness)
        else:
            raise ConfigError("the data policy of Chess needs opponent=stockfish")

        def respond() -> ExpertAction:
            action = write_move(choose(self._board), self._board, self._notation)
            return ExpertAction(action, (("thoughts", json.dumps(f"I choose {action}")),))

        return respond

    def render(self) -> str:
        """The diagram, seen from White's side."""
        return diagram(self._board.board_fen())

    def _listed_moves(self) -> tuple[str, ...] | None:
        return self.legal_actions() or None

    def _begin(self, seed: int) -> None:
        self._key = int(self.np_random.integers(1 << 62))
        self._board = chess.Board()
        if self._endgame is not None:
            self._board = self._endgame.begin(seed, self.np_random)
        self._illegal, self._tried = 0, ()
        self._is_over = False
        self._restarts_before = self._opponent.restarts
        if self._agent == chess.BLACK:
            self._board.push(self._reply())

    def _play(self, move: chess.Move, reward: float) -> Transition:
        """The agent's move, and the opponent's unless the game has ended."""
        self._board.push(move)
        try:
            if not self._board.is_game_over() and self._board.ply() < self._ply_limit:
                self._board.push(self._reply())
        except Exception:
            self._board.pop()  # an engine that failed leaves the game where it was
            raise
        self._tried = ()
        terminated = self._board.is_game_over()
        truncated = not terminated and self._board.ply() >= self._ply_limit
        self._is_over = terminated or truncated
        return Transition(reward + float(self.success()), terminated, truncated)

    def _penalize(self, action: str) -> tuple[chess.Move | None, bool]:
        """What is played in the place of an illegal move, if anything, and whether the game
        is lost by it."""
        self._illegal += 1
        is_lost = self._on_illegal == "lose" or self._illegal >= self._illegal_limit
        if self._on_illegal == "random" and not is_lost:
            return random_move(self._board, self._randomness(1)), False
        shown = "".join(letter if letter in _PLAIN else "?" for letter in action[:_SHOWN])
        self._tried = (*self._tried, shown or "?")
        return None, is_lost

    def _reply(self) -> chess.Move:
        randomness = self._randomness(0)
        if self._endgame is None and randomness.random() < RANDOM_RATE:
            return random_move(self._board, randomness)
        return self._opponent.reply(self._board, randomness)

    def _randomness(self, purpose: int) -> np.random.Generator:
        """Generator of this half-move of this game: what is drawn now does not depend on how the
        game came to stand here, nor on what was drawn before."""
        key = (self._key << 64) | (self._board.ply() << 1) | purpose
        return np.random.Generator(np.random.Philox(key=key))

    def _goal(self) -> str:
        side, example = ("White", "e2e4") if self._agent == chess.WHITE else ("Black", "e7e5")
        if self._notation == "san":
            return f"You play {side}. Give your move in SAN, such as {example[2:]} or Nf3."
        return f"You play {side}. Give your move in UCI notation, such as {example}."

    def _text(self) -> str:
        position = write_position(self._board, self._style, with_rest=self._endgame is None)
        return f"{position}\nillegal: {' '.join(self._tried)}" if self._tried else position

    def _state_key(self) -> str:
        """All that decides what may follow, but for the opponent's draws and for positions
        before this one, which count only where they are repeated."""
        board = self._board
        may_repeat = board.halfmove_clock >= 4
        seen = 1 + sum(may_repeat and board.is_repetition(count) for count in range(2, 6))
        tried = " ".join(self._tried)
        return f"{board.fen()} seen {seen} illegal {self._illegal} {tried}".rstrip()


def _opponent_of(kind: str, program: str) -> Opponent:
    if kind == "builtin":
        return Builtin()
    return Stockfish(require_uci(require_stockfish(program)), OPPONENT, EXPERT)


def _require_one_of(allowed: tuple[str, ...], name: str, value: object) -> None:
    require_option(value in allowed, name, value, " or ".join(allowed))
