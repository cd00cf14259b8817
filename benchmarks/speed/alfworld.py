"""ALFWorld's engine beside the package's own: processor time per step and per start.

Both play the same commands of the same games, and must say the same, byte for byte. Time is
the processor's, not the clock's: both sides compute and never wait.
"""

import random
import resource
from collections.abc import Callable, Iterator
from itertools import count
from time import process_time
from typing import NamedTuple

from benchmarks.speed.contract import BenchmarkResult, Pair, compare
from benchmarks.speed.plain_alfworld import PlainEngine
from forethought.environments.alfworld.engine import Engine, GameText
from forethought.environments.alfworld.expert import advise
from forethought.environments.alfworld.games import Game
from forethought.environments.alfworld.generator import (
    LIMIT_STEPS,
    Draw,
    draw_game,
    solve,
)
from forethought.environments.alfworld.notes import Exchange, Notes
from forethought.environments.alfworld.package import SPLITS, TaskType

GAMES = 200
STEPS = 10
EXPERT_GAMES = 600
"""A hundred of each kind of task."""
PATIENCE = 200
"""Commands after which a game counts as not solved at all."""


class Played(NamedTuple):
    """One game on one engine."""

    transcript: list[str]
    """Everything that was said, with the commands that were admissible, and whether it was won."""
    start_s: float
    restart_s: float
    """Beginning the same game again."""
    step_s: float
    """Mean over the steps."""


def measure_alfworld(*, games: int = GAMES, steps: int = STEPS) -> Iterator[BenchmarkResult]:
    """Start (ours from the cache on the disk), restart and step of both engines.

    Raises:
        RuntimeError: they do not say the same.
    """
    scout, ours, plain = Engine(), Engine(), PlainEngine()
    starts: list[Pair] = []
    restarts: list[Pair] = []
    each_step: list[Pair] = []
    for index in range(games):
        game = draw_game(Draw(1, SPLITS[index % len(SPLITS)], index))
        commands = _commands(game, scout, steps, random.Random(index))
        fast = _play(game.text, commands, ours, lambda: ours.start(game.text))  # noqa: B023
        slow = _play(game.text, commands, plain, plain.restart)
        if fast.transcript != slow.transcript:
            raise RuntimeError(f"the engines do not say the same in {game.folder}")
        starts.append(Pair(1000 * fast.start_s, 1000 * slow.start_s))
        restarts.append(Pair(1000 * fast.restart_s, 1000 * slow.restart_s))
        each_step.append(Pair(1000 * fast.step_s, 1000 * slow.step_s))
    for name, pairs in (("start", starts), ("restart", restarts), ("step", each_step)):
        yield compare(f"alfworld/{name}", "ms", pairs, less_is_better=True)
    for engine in (scout, ours, plain):
        engine.close()


def measure_expert(*, games: int = EXPERT_GAMES) -> Iterator[BenchmarkResult]:
    """First drawings of games, as many of each kind of task, with the expert playing them.

    Games per second of processor time, drawn, translated (where the cache does not know them)
    and played; of each kind, the share solved within an episode's limit, and the mean number
    of commands; the share solved at all, within `PATIENCE`; the most memory held.
    """
    engine = Engine()
    lengths: dict[TaskType, list[int | None]] = {kind: [] for kind in TaskType}
    started = process_time()
    for index in count():
        if all(len(played) == games // len(TaskType) for played in lengths.values()):
            break
        game = draw_game(Draw(2, SPLITS[index % len(SPLITS)], index // len(SPLITS)))
        played = lengths[game.goal.task_type]
        if len(played) < games // len(TaskType):
            walkthrough = solve(game, engine, PATIENCE)
            played.append(None if walkthrough is None else len(walkthrough))
    seconds = process_time() - started
    engine.close()
    everything = [length for played in lengths.values() for length in played]
    yield _plain_result("games", len(everything) / seconds, "games/s")
    for kind, played in lengths.items():
        solved = [length for length in played if length is not None]
        in_time = sum(length <= LIMIT_STEPS for length in solved)
        yield _plain_result(f"{kind.label}/in time", in_time / len(played), "share")
        yield _plain_result(f"{kind.label}/commands", sum(solved) / len(solved), "mean")
    solved_at_all = sum(length is not None for length in everything)
    yield _plain_result("solved", solved_at_all / len(everything), "share")
    resident_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield _plain_result("memory", resident_mib, "MiB")


def _plain_result(name: str, value: float, unit: str) -> BenchmarkResult:
    return BenchmarkResult(f"alfworld/{name}", value, unit, None, None)


def _commands(game: Game, engine: Engine, steps: int, choices: random.Random) -> list[str]:
    """Half the expert's, half drawn from the admissible; now and then one that is not."""
    notes = Notes.of([Exchange(None, engine.start(game.text))])
    commands: list[str] = []
    while len(commands) < steps and not engine.won:
        command = choices.choice(engine.commands)
        if choices.random() < 0.5:
            command = advise(game.goal, notes, engine.commands).action
        elif choices.random() < 0.1:
            command = "dance"
        commands.append(command)
        notes = notes.after(Exchange(command, engine.step(command)))
    return commands


def _play(
    game: GameText, commands: list[str], engine: Engine | PlainEngine, again: Callable[[], str]
) -> Played:
    began = process_time()
    engine.start(game)
    started = process_time()
    transcript = [again(), *engine.commands]
    restarted = process_time()
    for command in commands:
        transcript += [engine.step(command), *engine.commands, str(engine.won)]
    ended = process_time()
    per_step_s = (ended - restarted) / max(len(commands), 1)
    return Played(transcript, started - began, restarted - started, per_step_s)
