"""What engines write, as it is read; what a weakened one chooses, by hand."""

import numpy as np
import pytest

from forethought.environments.chess.engine import Candidate, EngineCrashError, read_search
from forethought.environments.chess.stockfish import Strength, weakened_choice
from forethought.errors import ConfigError

INFO = "info depth {depth} seldepth 3 multipv {place} score {score} nodes 9 nps 1 time 1 pv {line}"


def info(depth: int, place: int, score: str, line: str) -> str:
    return INFO.format(depth=depth, place=place, score=score, line=line)


def test_the_last_complete_round_counts() -> None:
    found = read_search(
        [
            "info string NNUE evaluation using nn.nnue enabled",
            info(1, 1, "cp 31", "e2e4"),
            info(1, 2, "cp 20", "d2d4"),
            info(2, 1, "cp 40", "d2d4 d7d5"),
            info(2, 2, "cp -5 upperbound", "e2e4 e7e5"),
            info(3, 1, "cp 90", "g1f3"),
            "info depth 3 currmove e2e4 currmovenumber 2",
            "bestmove d2d4 ponder d7d5",
        ]
    )
    assert found == (
        "d2d4",
        (Candidate(40.0, ("d2d4", "d7d5")), Candidate(-5.0, ("e2e4", "e7e5"))),
    )


@pytest.mark.parametrize(
    ("score", "centipawns"),
    [
        pytest.param("cp -250", -250.0, id="behind"),
        pytest.param("mate 1", 9999.0, id="mates at once"),
        pytest.param("mate 3", 9997.0, id="a later mate counts less"),
        pytest.param("mate -2", -9998.0, id="is mated in two"),
        pytest.param("mate -1", -9999.0, id="sooner is worse"),
    ],
)
def test_a_mate_is_beyond_all_evaluations(score: str, centipawns: float) -> None:
    found = read_search([info(9, 1, score, "a2a4"), "bestmove a2a4"])
    assert found.candidates[0].score == centipawns


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["bestmove (none)"], id="no move"),
        pytest.param(["bestmove"], id="nothing"),
        pytest.param(["bestmove e2e4"], id="no evaluation"),
        pytest.param([info(1, 1, "cp much", "e2e4"), "bestmove e2e4"], id="no number"),
        pytest.param(["info pv e2e4 score", "bestmove e2e4"], id="cut short"),
    ],
)
def test_nonsense_is_a_crash(lines: list[str]) -> None:
    with pytest.raises(EngineCrashError, match="the engine"):
        read_search(lines)


class Fixed:
    """Draws these numbers."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)
        self.ranges: list[int] = []

    def integers(self, stop: int) -> int:
        self.ranges.append(stop)
        return self.numbers.pop(0)


@pytest.mark.parametrize(
    ("scores", "draws", "chosen"),
    [
        # w = 120: a move that loses x keeps -x + 120 x / 128 = -x / 16; d u / 128 is added.
        pytest.param((40, 0), (0, 0), 0, id="equal luck: 40 against 40 - 40 / 16"),
        pytest.param((40, 0), (0, 10), 1, id="35 * 10 / 128 = 2.7 makes up for 2.5"),
        pytest.param((40, 0), (0, 9), 0, id="35 * 9 / 128 = 2.46 does not"),
        pytest.param((16, 0), (0, 8), 1, id="spread 16: 1 for 1, and the worse wins ties"),
        pytest.param((16, 0), (0, 7), 0, id="spread 16: 7 / 8 for 1"),
        pytest.param((9999, 500), (0, 119), 0, id="a mate is never missed"),
        pytest.param((700, 180, 170), (0, 119, 0), 1, id="five pawns away is just in reach"),
        pytest.param((800, 180, 170), (0, 119, 0), 0, id="six are not"),
    ],
)
def test_a_weak_engine_chooses(
    scores: tuple[float, ...], draws: tuple[int, ...], chosen: int
) -> None:
    candidates = tuple(Candidate(score, (str(place),)) for place, score in enumerate(scores))
    randomness = Fixed(*draws)
    assert weakened_choice(candidates, 120.0, randomness) == candidates[chosen]  # type: ignore[arg-type]
    assert set(randomness.ranges) == {120}


def test_strengths() -> None:
    assert Strength(1).level == 20
    assert Strength(1, 1350).level == pytest.approx(0.00963, abs=1e-5)  # (3.4 / 143.4) ** 1.2407
    assert Strength(1, 2850).level == pytest.approx(18.457, abs=0.001)
    for nodes, elo in ((0, None), (1, 1349), (1, 2851)):
        with pytest.raises(ConfigError, match="expected"):
            Strength(nodes, elo)


def test_equal_moves_are_drawn_about_equally() -> None:
    """With no spread the last of equals is taken, as in the engine."""
    candidates = tuple(Candidate(score, (str(score),)) for score in (30.0, 20.0, 10.0, 0.0))
    randomness = np.random.default_rng(0)
    counts = [0, 0, 0, 0]
    for _ in range(2000):
        counts[candidates.index(weakened_choice(candidates, 119.98, randomness))] += 1
    assert min(counts) > 400
    assert counts[0] > counts[3]
