"""Attacks on runs of many processes: workers and engines killed again and again.

    python -m tests.durability.worker_attacks --minutes 10

prints what was killed, and what the run made of it. The tests call the same function with a few
kills. Engine, trainer and workers are processes of their own, by their commands.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.store import read_shards
from forethought.rollouts.task import open_task
from tests.durability.commands import fork
from tests.engines import free_port, save_model

ENVIRONMENT = EnvironmentConfig("NumberLine", options=("max_position=2",), image_size=64)
"""Episodes of several steps, so that a worker that dies has begun some."""
WAIT_S = 120.0
SILENCE_S = 4.0
"""Without a sign for so long a worker counts as dead."""


class Lost(NamedTuple):
    """What was killed, and what the run made of it."""

    workers: int
    engines: int
    iterations: int
    episodes: int
    replayed: int
    """Episodes whose player fell silent, and that others played."""
    seconds: float
    harm: list[str]
    """One line for whatever is not as it should be."""


class Command:
    """A command in a process of its own; what it says goes to a file."""

    def __init__(self, log: Path, words: list[str]) -> None:
        self.log = log
        self._process = fork(words, log, log)

    @property
    def code(self) -> int | None:
        """Its exit code; None: it runs."""
        return self._process.exitcode

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.join()

    def wait(self, timeout_s: float) -> int | None:
        self._process.join(timeout_s)
        return self.code


def lose(
    folder: Path,
    *,
    steps: int,
    kills: int,
    pause: Callable[[Command, Path], None],
    engine_every: int,
    workers: int = 2,
) -> Lost:
    """Trains PPO by workers and an engine, while they are killed and others are started.

    Args:
        folder: for model, run and logs.
        steps: of the environment, in all.
        kills: of workers, if the run does not end before.
        pause: waits between two of them, while the trainer trains a run folder.
        engine_every: after so many of them the engine is killed, too.
        workers: that play at a time.
    """
    task = open_task(ENVIRONMENT, PromptConfig(), default_image_size=None)
    model, run = save_model(folder / "model", task), folder / "run"
    port = free_port()
    count = 0

    def start(*words: str) -> Command:
        nonlocal count
        count += 1
        return Command(folder / f"{words[0]}_{count}.log", list(words))

    def serve() -> Command:
        return start("serve", str(model), "--port", str(port), "--weights-from", str(run))

    def play() -> Command:
        return start("work", "--run", str(run), "--num-envs", "3")

    engine, players = serve(), [play() for _ in range(workers)]
    trainer = start("train", "ppo", *_flags(model, run, port, steps))
    while trainer.code is None and not list((run / "work" / "shards").glob("*")):
        trainer.wait(0.1)  # Until the first episode was handed in: from here on there are kills.
    begun_s, killed, engines = time.monotonic(), 0, 0
    while trainer.code is None and killed < kills:
        pause(trainer, run)
        players.pop(0).kill()
        players.append(play())
        killed += 1
        if killed % engine_every == 0:
            engine.kill()
            engine = serve()
            engines += 1
    trainer.wait(60 * WAIT_S)
    taken_s = time.monotonic() - begun_s
    codes = [player.wait(0.0 if trainer.code else WAIT_S) for player in players]
    for process in (engine, *players):
        process.kill()
    harm = [f"the trainer ended with {trainer.code}: {_last(trainer)}"] if trainer.code else []
    harm += [f"a worker ended with {code}" for code in codes if code]
    return _judged(run, trainer, Lost(killed, engines, 0, 0, 0, taken_s, harm))


def _flags(model: Path, run: Path, port: int, steps: int) -> list[str]:
    return [
        *("--model", str(model), "--output", str(run), "--environment.id", ENVIRONMENT.id),
        *("--environment.options", *ENVIRONMENT.options, "--environment.image-size", "64"),
        *("--total-steps", str(steps)),
        *("--rollout.num-envs", "8", "--rollout.steps-per-iteration", "16"),
        *("--rollout.temperature", "1", "--rollout.max-new-tokens", "12"),
        *("--batch-size", "16", "--epochs", "1", "--compute.threads", "1"),
        *("--generation.engine", f"http://127.0.0.1:{port}", "--generation.workers"),
        *("--generation.worker-silence-s", str(SILENCE_S)),
    ]


def _judged(run: Path, trainer: Command, found: Lost) -> Lost:
    """With what is stored, and what of it should not be."""
    harm = list(found.harm)
    shards = sorted((run / "trajectories").glob("*.parquet"))
    trajectories = [trajectory for shard in shards for trajectory in read_shards(shard)]
    seeds = [trajectory.seed for trajectory in trajectories]
    if len(set(seeds)) < len(seeds):
        harm.append(f"{len(seeds) - len(set(seeds))} episodes were trained on twice")
    expected = {episode_seed(Split.TRAINING, 0, index) for index in range(len(seeds))}
    if set(seeds) != expected:
        harm.append(f"{len(expected - set(seeds))} episodes are missing")
    newest = -1
    for shard in shards:  # In lockstep: each iteration by the weights of its own.
        versions = {step.policy_version for t in read_shards(shard) for step in t.steps}
        if len(versions) != 1 or min(versions) <= newest:
            harm.append(f"{shard.name} was played by {sorted(versions)}, after {newest}")
        newest = max(versions)
    said = trainer.log.read_text(encoding="utf-8", errors="replace")
    return found._replace(
        iterations=len(shards),
        episodes=len(seeds),
        replayed=said.count("is silent; it is played again"),
        harm=harm,
    )


def _last(command: Command) -> str:
    return command.log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]


def attack(arguments: Any) -> None:
    """Prints what was killed, and the harm."""
    seconds, worker_s = 60 * arguments.minutes, arguments.worker_s

    def pause(trainer: Command, run: Path) -> None:
        trainer.wait(worker_s)

    with tempfile.TemporaryDirectory() as folder:
        found = lose(
            Path(folder),
            # Four steps in a second, as measured on two busy cores, and a quarter more.
            steps=max(128, round(5 * seconds)),
            kills=math.ceil(seconds / worker_s),
            pause=pause,
            engine_every=max(1, round(arguments.engine_s / worker_s)),
            workers=arguments.workers,
        )
    print(
        f"{found.workers} workers and {found.engines} engines killed in {found.seconds:.0f} s: "
        f"{found.iterations} iterations, {found.episodes} episodes, {found.replayed} of them "
        f"played again; harm: {'; '.join(found.harm) or 'none'}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--worker-s", type=float, default=10.0)
    parser.add_argument("--engine-s", type=float, default=120.0)
    attack(parser.parse_args())
