"""Rules, rewards and ends, each in a game that is played out here."""

import json
import pickle

import chess
import numpy as np
import pytest

from forethought.environments.chess import game
from forethought.environments.chess.game import Chess
from forethought.environments.chess.notation import diagram, find_diagram
from forethought.environments.chess.opponent import Recommendation
from forethought.environments.contract import Transition
from forethought.environments.gymnasium_view import GymnasiumView
from forethought.errors import ConfigError
from forethought.prompts.responses import parse_response
from forethought.rollouts.scripted import written

START = chess.STARTING_FEN


class Script:
    """An opponent who plays these moves, whatever happens."""

    label = "Chess, scripted"
    restarts = 0
    moves: tuple[str, ...] = ()

    def reply(self, board: chess.Board, randomness: np.random.Generator) -> chess.Move:
        return chess.Move.from_uci(self.moves[(board.ply() - 1) // 2])

    def advise(self, board: chess.Board) -> Recommendation:
        return Recommendation(next(iter(board.legal_moves)), 0.0, None)

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game, "Builtin", Script)
    monkeypatch.setattr(game, "RANDOM_RATE", 0.0)


def scripted(monkeypatch: pytest.MonkeyPatch, replies: str = "", **options: object) -> Chess:
    """Against these replies; Black moves on even half-moves, White on odd ones."""
    monkeypatch.setattr(Script, "moves", tuple(replies.split()))
    made = Chess(opponent="builtin", **options)  # type: ignore[arg-type]
    made.reset(0)
    return made


def play(environment: Chess, moves: str) -> list[Transition]:
    return [environment.step(move) for move in moves.split()]


def measure(environment: Chess, name: str) -> float:
    return dict(environment.metrics())[name]


def test_checkmate_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    scholar = scripted(monkeypatch, "e7e5 b8c6 g8f6")
    assert play(scholar, "e2e4 f1c4 d1h5") == [(0.0, False, False)] * 3
    assert not scholar.success()
    assert scholar.step("h5f7") == (1.0, True, False)
    assert scholar.success()
    assert measure(scholar, "mated") == measure(scholar, "drawn") == 0
    assert measure(scholar, "half_moves") == 7
    for after_the_end in (lambda: scholar.step("a2a3"), scholar.expert):
        with pytest.raises(RuntimeError, match="over"):
            after_the_end()


def test_both_sides_play_the_same_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium's view adds nothing and leaves nothing out."""
    words = scripted(monkeypatch, "e7e5 b8c6 g8f6")
    environment = GymnasiumView("Chess", opponent="builtin")
    assert environment.reset(seed=0)[0] == START
    for move in ("e2e4", "e2e4", "f1c4", "d1h5", "h5f7"):
        transition = words.step(move)
        text, *rest, about = environment.step(move)
        assert (text, tuple(rest)) == (words.observation().text, transition)
        assert about["success"] == (move == "h5f7")
    environment.close()


def test_being_mated_pays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fool = scripted(monkeypatch, "e7e5 d8h4")
    assert play(fool, "f2f3 g2g4") == [(0.0, False, False), (0.0, True, False)]
    assert not fool.success()
    assert measure(fool, "mated") == 1


def test_black_may_win(monkeypatch: pytest.MonkeyPatch) -> None:

    def reply(_: Script, board: chess.Board, randomness: np.random.Generator) -> chess.Move:
        return chess.Move.from_uci(("f2f3", "g2g4")[board.ply() // 2])

    monkeypatch.setattr(Script, "reply", reply)
    fool = scripted(monkeypatch, color="black")
    assert fool.observation().text == chess.Board(START).fen().replace(
        "PPPPPPPP/RNBQKBNR w", "PPPPP1PP/RNBQKBNR b"
    ).replace("/8/PPPPP1PP", "/5P2/PPPPP1PP")
    assert play(fool, "e7e5 d8h4") == [(0.0, False, False), (1.0, True, False)]
    assert fool.success()


def test_stalemate_is_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest known one: ten moves."""
    loyd = scripted(monkeypatch, "a7a5 a8a6 h7h5 a6h6 f7f6 e8f7 d8d3 d3h7 f7g6")
    moves = "e2e3 d1h5 h5a5 h2h4 a5c7 c7d7 d7b7 b7b8 b8c8"
    assert play(loyd, moves) == [(0.0, False, False)] * 9
    assert loyd.step("c8e6") == (0.0, True, False)
    assert not loyd.success()
    assert measure(loyd, "drawn") == 1


def test_the_fifth_repetition_is_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    knights = scripted(monkeypatch, "g8f6 f6g8 " * 4)
    keys: list[str] = []
    for move in ("g1f3", "f3g1", "g1f3", "f3g1", "g1f3", "f3g1", "g1f3"):
        assert knights.step(move) == (0.0, False, False)
        keys.append(knights.observation().state_key)
    assert [key.split(" seen ")[1] for key in keys] == [
        f"{times} illegal 0" for times in (1, 2, 2, 3, 3, 4, 4)
    ]
    assert knights.step("f3g1") == (0.0, True, False)
    assert measure(knights, "drawn") == 1


def test_the_limit_truncates(monkeypatch: pytest.MonkeyPatch) -> None:
    short = scripted(monkeypatch, "e7e5 b8c6", ply_limit=4)
    assert play(short, "e2e4 f1c4") == [(0.0, False, False), (0.0, False, True)]
    assert measure(short, "drawn") == 0


def test_the_limit_may_fall_on_the_agents_move(monkeypatch: pytest.MonkeyPatch) -> None:
    short = scripted(monkeypatch, "e7e5", ply_limit=3)
    assert play(short, "e2e4 f1c4") == [(0.0, False, False), (0.0, False, True)]
    assert measure(short, "half_moves") == 3


def test_mate_on_the_last_half_move_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    scholar = scripted(monkeypatch, "e7e5 b8c6 g8f6", ply_limit=7)
    assert play(scholar, "e2e4 f1c4 d1h5 h5f7")[-1] == (1.0, True, False)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("e2e5", id="no such pawn move"),
        pytest.param("e7e5", id="the opponent's"),
        pytest.param("0000", id="UCI's null move"),
        pytest.param("e4", id="SAN"),
        pytest.param(" e2e4", id="a blank"),
        pytest.param("", id="nothing"),
        pytest.param("e2e4q", id="no promotion here"),
        pytest.param("\ud800 🂡", id="odd"),
    ],
)
def test_an_illegal_move_costs_one_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    strict = scripted(monkeypatch, "e7e5")
    before = strict.observation()
    assert strict.step(text) == (-1.0, False, False)
    after = strict.observation()
    assert after.text is not None
    assert after.text.splitlines()[0] == before.text == START
    assert after.text.isascii()
    assert after.state_key != before.state_key
    assert measure(strict, "illegal_moves") == 1
    assert strict.step("e2e4") == (0.0, False, False)
    assert "illegal:" not in (strict.observation().text or "")


def test_what_was_tried_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = scripted(monkeypatch, "e7e5")
    play(strict, "e2e5 e4")
    strict.step('<"script\n')
    assert strict.observation().text == f"{START}\nillegal: e2e5 e4 ??script"


def test_so_many_illegal_moves_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = scripted(monkeypatch, "e7e5", illegal_limit=2)
    assert play(strict, "x e2e4 x") == [(-1, False, False), (0, False, False), (-1, True, False)]
    assert strict.legal_actions() == ()
    lost = scripted(monkeypatch, on_illegal="lose")
    assert play(lost, "x") == [(-1, True, False)]


def test_an_illegal_move_may_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    lucky = scripted(monkeypatch, "e7e5 b8c6", on_illegal="random", illegal_limit=2)
    assert lucky.step("x") == (-1.0, False, False)
    assert measure(lucky, "half_moves") == 2
    first = lucky.observation().text
    lucky.reset(0)
    lucky.step("y")
    assert lucky.observation().text == first  # drawn by seed and half-move, not by the text
    assert lucky.step("x") == (-1.0, True, False)
    assert measure(lucky, "half_moves") == 2


@pytest.mark.parametrize("text", ["h5f7", "Qf7", "Qxf7", "Qxf7+", "Qxf7#", "--", "Z0", "O-O"])
def test_san(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Marks of check may be left out; everything else may not."""
    scholar = scripted(monkeypatch, "e7e5 b8c6 g8f6", notation="san")
    play(scholar, "e4 Bc4 Qh5")
    assert "Qxf7#" in scholar.legal_actions()
    assert scholar.success() is False
    is_mate = text.startswith("Qxf7")
    assert scholar.step(text) == ((1.0, True, False) if is_mate else (-1.0, False, False))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        *(("Qxf7#", "Qxf7#"), ("Qxf7", "Qxf7#"), ("Qxf7+", "Qxf7#"), ("e5", None), ("#", None)),
        *(("Nf3#", "Nf3"), ("Qf7", None), ("", None)),
    ],
)
def test_the_list_knows_what_the_environment_takes_for_a_move(
    monkeypatch: pytest.MonkeyPatch, text: str, meant: str | None
) -> None:
    """So no answer is executed and counted as invalid, and none is recorded by two names."""
    scholar = scripted(monkeypatch, "e7e5 b8c6 g8f6 d7d6", notation="san", legal_moves=True)
    play(scholar, "e4 Bc4 Qh5")
    # As it comes from a worker process.
    listed = pickle.loads(pickle.dumps(scholar.observation().admissible_actions))  # noqa: S301
    assert listed == scholar.legal_actions()
    said = written(json.dumps({"action": text}))
    parsed = parse_response(said, listed, resolve_action=scholar.resolve_action)
    assert (parsed.action, parsed.is_valid) == (meant or text, meant is not None)
    assert (scholar.step(text).reward >= 0) is parsed.is_valid


def test_uci_has_no_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = scripted(monkeypatch, "e7e5", legal_moves=True)
    listed = plain.observation().admissible_actions
    said = written('{"action": "e2e4+"}')
    assert not parse_response(said, listed, resolve_action=plain.resolve_action).is_valid
    assert plain.step("e2e4+").reward == -1


def test_a_promotion_names_its_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    far = scripted(monkeypatch, "a7a6 a6a5 a5a4 a4a3")
    play(far, "h2h4 h4h5 h5h6 h6g7")
    assert far.step("g7h8") == (-1.0, False, False)
    monkeypatch.setattr(Script, "moves", (*Script.moves, "b7b6"))
    assert far.step("g7h8n") == (0.0, False, False)
    assert (far.observation().text or "").startswith("rnbqkbnN/")


def test_squares_and_the_list_of_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    spelled = scripted(monkeypatch, "e7e5", board="squares", legal_moves=True)
    spelled.step("e2e4")
    seen = spelled.observation()
    assert seen.text == (
        "r n b q k b n r\np p p p o p p p\no o o o o o o o\no o o o p o o o\n"
        "o o o o P o o o\no o o o o o o o\nP P P P o P P P\nR N B Q K B N R\nw KQkq - 0 2"
    )
    assert seen.admissible_actions == spelled.legal_actions()
    assert len(spelled.legal_actions()) == 29
    assert seen.task_type == "Chess, scripted"


def test_the_diagram(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = scripted(monkeypatch)
    assert GymnasiumView(shown, render_mode="ansi").render() == shown.render()
    assert shown.render().splitlines()[0] == "8 ♜ ♞ ♝ ♛ ♚ ♝ ♞ ♜"
    assert diagram("8/8/8/3k4/8/8/4P3/4K3").splitlines()[3:] == [
        "5 · · · ♚ · · · ·",
        "4 · · · · · · · ·",
        "3 · · · · · · · ·",
        "2 · · · · ♙ · · ·",
        "1 · · · · ♔ · · ·",
        "  a b c d e f g h",
    ]
    assert find_diagram(shown.observation().state_key) == shown.render()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("3->4 shows 3", id="another environment's key"),
        pytest.param("8/8/8/8/8/8/8 w - - 0 1", id="seven ranks"),
        pytest.param("8/8/8/8/8/8/8/7 w - - 0 1", id="a rank of seven squares"),
        pytest.param("8/8/8/8/8/8/8/8x w - - 0 1", id="no piece"),
        pytest.param("\ud800/" * 8, id="odd"),
    ],
)
def test_what_is_no_position_has_no_diagram(text: str) -> None:
    assert find_diagram(text) is None


def test_the_opponent_moves_at_random_one_time_in_twenty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game, "RANDOM_RATE", 0.05)
    made = scripted(monkeypatch, "e7e5")
    strays = 0
    for seed in range(600):
        made.reset(seed)
        made.step("e2e4")
        strays += not (made.observation().text or "").startswith("rnbqkbnr/pppp1ppp/8/4p3")
    assert 15 < strays < 48  # 30 x 19/20 expected, standard deviation 5.2


@pytest.mark.parametrize(
    ("score", "mate_in", "thought"),
    [
        (20.0, None, "the game is even, so I choose "),
        (-140.0, None, "I am 1.4 pawns behind, so I choose "),
        (330.0, None, "I am 3.3 pawns ahead, so I choose "),
        (9998.0, 2, "I mate in 2, so I choose "),
    ],
)
def test_the_expert_says_why(
    monkeypatch: pytest.MonkeyPatch, score: float, mate_in: int | None, thought: str
) -> None:
    def advise(_: Script, board: chess.Board) -> Recommendation:
        return Recommendation(chess.Move.from_uci("g1f3"), score, mate_in)

    monkeypatch.setattr(Script, "advise", advise)
    for notation, text in (("uci", "g1f3"), ("san", "Nf3")):
        expert_action = scripted(monkeypatch, notation=notation).expert()
        assert expert_action == (text, (("thoughts", json.dumps(thought + text)),))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("opponent", "gnuchess"),
        ("color", "red"),
        ("notation", "iccf"),
        ("board", "image"),
        ("legal_moves", 1),
        ("on_illegal", "forgive"),
        ("illegal_limit", 0),
        ("ply_limit", 1),
    ],
)
def test_a_wrong_option_is_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is {value!r} — expected "):
        Chess(**{"opponent": "builtin", name: value})  # type: ignore[arg-type]
