"""Games of chess per second: two engines in two worker processes, beside one in one.

The agent moves at random, so the time is Stockfish's and the rules'.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from time import perf_counter

import numpy as np

from benchmarks.speed.contract import BenchmarkResult, compare, side_by_side
from forethought.environments import find_environment, is_installed, make_environment
from forethought.environments.chess.engine import find_stockfish
from forethought.environments.vector import Act, Failed, Reset, Runner, SubprocessRunner

PAIRS = 5
SECONDS = 5.0
"""Of one measurement; there are two in a pair."""


def measure_chess(*, pairs: int = PAIRS, seconds: float = SECONDS) -> Iterator[BenchmarkResult]:
    """Nothing where there is no engine or no `chess` package."""
    if find_stockfish() is None or not is_installed(find_environment("Chess")):
        return
    environment = partial(make_environment, "Chess")
    with (
        SubprocessRunner(environment, 2, workers=2) as two,
        SubprocessRunner(environment, 1, workers=1) as one,
    ):
        players = _player(two), _player(one)
        for warm_up in players:
            warm_up(1, 0.0)
        ours, baseline = (partial(player, 1, seconds) for player in players)
        measured = [side_by_side(ours, baseline) for _ in range(pairs)]
    yield compare("environments/Chess/2 engines beside 1", "games/s", measured)


def _player(runner: Runner) -> Callable[[int, float], float]:
    """Plays on from where it stopped, for so many games and seconds at least."""
    random, seeds = np.random.default_rng(0), count()
    for slot in range(runner.slots):
        runner.send(slot, Reset(next(seeds)))

    def play(games: int, seconds: float) -> float:
        ended, started = 0, perf_counter()
        while (elapsed := perf_counter() - started) < seconds or ended < games:
            for reply in runner.receive():
                if isinstance(reply, Failed):
                    raise RuntimeError(reply.message)
                if reply.legal_actions:
                    drawn = int(random.integers(len(reply.legal_actions)))
                    runner.send(reply.slot, Act(reply.legal_actions[drawn]))
                else:
                    ended += 1
                    runner.send(reply.slot, Reset(next(seeds)))
        return ended / elapsed

    return play
