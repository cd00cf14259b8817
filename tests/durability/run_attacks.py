"""Attacks on runs and what they leave: workers killed, bits flipped, hostile values, `kill -9`.

    python -m tests.durability.run_attacks [NAME …]

prints the rows of docs/reliability.md: what was tried, how often, and how often it did harm.
The tests call the same functions with fewer tries.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from forethought.configs.parts import SamplingConfig
from forethought.durable import write_text
from forethought.environments import make_environment
from forethought.environments.vector import InProcessRunner, Runner, SubprocessRunner
from forethought.errors import CheckpointError, ForethoughtError, StorageError
from forethought.evaluation.results import Evaluation
from forethought.prompts.prompters import PlainPrompter, make_prompter
from forethought.rollouts.collector import Collector
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.seeding import Split
from forethought.rollouts.store import read_shard, write_shard
from forethought.runs.checkpoints import model_source
from forethought.runs.metrics import MetricsLog, read_metrics
from forethought.runs.run_folder import LOG_SEALS, RunFolder
from forethought.types import Metric, Trajectory
from tests.durability.comparison import assert_same_run, iterations_with_pairs
from tests.durability.conftest import (
    CHOOSING,
    DPO,
    DPO_TRAJECTORY,
    PPO,
    PPO_ITERATIONS,
    SFT,
    trained,
)
from tests.durability.kills import kill_and_resume, moments
from tests.unit.data.builders import make_trajectory
from tests.unit.environments.hostile_environment import HOSTILE, HostileEnvironment
from tests.unit.reports.builders import evaluation
from tests.unit.rollouts.dice import Dice

SLOTS, EPISODES = 4, 40
OFFLINE = (
    "--environment.id Bandit --environment.options expert=random_choice "
    "--prompt.format action_only --batch-size 8 --checkpoint-every 4 --compute.threads 1"
)


class Found(NamedTuple):
    """What came of one attack."""

    attack: str
    tries: int
    failures: int
    note: str = ""

    @property
    def row(self) -> str:
        return f"| {self.attack} | {self.tries} | {self.failures} | {self.note} |"


# Environments


def killed_workers(kills: int) -> Found:
    """Worker processes end at random moments; every episode must come to what it comes to
    where none does, or be given up and counted: one whose worker ends twice is."""
    made = partial(make_environment, "NumberLine", image_size=64)
    with InProcessRunner(made, SLOTS) as runner:
        expected = _numbers(_played(runner, lambda: None))
    with SubprocessRunner(made, SLOTS, workers=2) as runner:
        killer = _Killer(runner, kills)
        lost = wrong = rounds = 0
        while killer.struck < kills:  # The same episodes again, until all kills have come.
            found = _played(runner, killer.on_step)
            pairs = zip(_numbers(found), expected, strict=True)
            lost += sum(trajectory.failure is not None for trajectory in found)
            wrong += sum(one != other and len(one) > 1 for one, other in pairs)
            rounds += 1
    note = f"of {rounds * EPISODES} episodes {lost} were given up: killed a second time"
    return Found("a worker process killed", killer.struck, wrong, note)


class _Killer:
    """Kills a worker every few steps, a moment later: in the middle of whatever it does then."""

    def __init__(self, runner: SubprocessRunner, kills: int) -> None:
        self._runner, self._kills = runner, kills
        self._draw = random.Random(0)
        self._steps_left = 3
        self.struck = 0

    def on_step(self) -> None:
        self._steps_left -= 1
        ready = [worker for worker in self._runner._workers if worker.is_ready]
        if self._steps_left <= 0 and self.struck < self._kills and ready:
            # One that only starts has no episode to lose; and if none came to its start, the run
            # would end, as it should.
            self._steps_left = self._draw.randint(5, 20)
            self.struck += 1
            process = self._draw.choice(ready).process_id
            threading.Timer(self._draw.uniform(0.0, 0.02), _kill, (process,)).start()


def _kill(process: int | None) -> None:
    if process is not None:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _played(runner: Runner, on_step: Callable[[], object]) -> list[Trajectory]:
    actions = runner.actions
    assert actions is not None
    collector = Collector(
        environment_id="NumberLine",
        runner=runner,
        policy=Dice({action: 1 / len(actions) for action in actions}),
        prompter=make_prompter(make_environment("NumberLine"), response_format="action_only"),
        sampling=SamplingConfig(max_new_tokens=8, temperature=1.0),
        split=Split.TRAINING,
        run_seed=0,
        on_step=on_step,
    )
    return collector.collect_episodes(range(EPISODES)).trajectories


def _numbers(trajectories: list[Trajectory]) -> list[tuple[object, ...]]:
    return [
        (one.seed, *((step.action.action, step.reward, step.state_key) for step in one.steps))
        for one in trajectories
    ]


def hostile_values(episodes: int) -> Found:
    """Every value and deed of `HostileEnvironment`, in every second episode, in this process."""
    troubles = (*HOSTILE, "exit", "interrupt", "hang")
    failures = 0
    prompter = PlainPrompter(HostileEnvironment.actions, "action_only")
    for trouble in troubles:
        played = play(
            "Count",
            partial(HostileEnvironment, trouble),
            prompter,
            expert_response("action_only"),
            range(2 * episodes),
            timeout_s=0.2,
        )
        for index, trajectory in enumerate(played):
            is_lost = trajectory.failure is not None and not trajectory.steps
            failures += is_lost != bool(index % 2)
    return Found(
        "an environment gives an impossible value, exits or hangs",
        len(troubles) * episodes,
        failures,
    )


# Files


def flipped_checkpoints(flips: int) -> Found:
    """One bit of one file of a checkpoint."""
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        run = trained(SFT, Path(folder) / "sft")
        files = [path for path in (run / "checkpoints/step_10").rglob("*") if path.is_file()]
        failures = 0
        for _ in range(flips):
            with _flipped(draw.choice(files), draw):
                try:
                    model_source(str(run))
                    failures += 1
                except CheckpointError:
                    pass
    return Found("a bit of a checkpoint flipped", flips, failures)


def flipped_shards(flips: int) -> Found:
    """One bit of a shard."""
    draw = random.Random(2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0.parquet"
        write_shard(path, [make_trajectory(0.0, 1.0, seed=seed) for seed in range(50)])
        failures = 0
        for _ in range(flips):
            with _flipped(path, draw):
                try:
                    read_shard(path)
                    failures += 1
                except StorageError:
                    pass
    return Found("a bit of a shard flipped", flips, failures)


def flipped_results(flips: int) -> Found:
    """One bit of evaluation.json, of a log or of the logs' seals, where it changes what is read."""
    draw = random.Random(3)
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder.create(Path(name) / "run")
        with MetricsLog.create(folder) as log:
            for step in range(50):
                log.log(step, [Metric("loss", draw.random())])
                log.log_timing(step, [Metric("update_s", draw.random())])
        write_text(folder.evaluation_path, evaluation(0.5).to_json())
        files: dict[Path, Callable[[Path], object]] = {
            folder.evaluation_path: _evaluation,
            folder.metrics_path: _log,
            folder.timings_path: _log,
            folder.path / LOG_SEALS: lambda _: _log(folder.metrics_path),
        }
        sound = {path: read(path) for path, read in files.items()}
        failures = 0
        for _ in range(flips):
            path = draw.choice(list(files))
            with _flipped(path, draw), suppress(StorageError):
                failures += files[path](path) != sound[path]
    return Found("a bit of evaluation.json, a log or logs.json flipped", flips, failures)


def _evaluation(path: Path) -> object:
    try:
        return Evaluation.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise StorageError(str(error)) from error


def _log(path: Path) -> object:
    table = read_metrics(path)
    return table.steps.tolist(), table.names, table.values.tolist()


class _flipped:  # noqa: N801
    """A file with one bit of it flipped, put back at the end."""

    def __init__(self, path: Path, draw: random.Random) -> None:
        self._path, self._whole = path, path.read_bytes()
        self._place, self._bit = draw.randrange(len(self._whole)), draw.randrange(8)

    def __enter__(self) -> None:
        altered = bytearray(self._whole)
        altered[self._place] ^= 1 << self._bit
        self._path.write_bytes(altered)

    def __exit__(self, *_: object) -> None:
        self._path.write_bytes(self._whole)


# Runs


def killed_runs(kills: int) -> Found:
    """`kill -9` at random moments of eight algorithms, each followed by `--resume`: the run must
    end as one that nobody stopped, byte for byte."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = _runs(folder)
        for algorithm, (words, rounds) in runs.items():
            whole = trained(words, folder / f"{algorithm}_whole")
            if algorithm == "dpo":
                rounds = iterations_with_pairs(whole)
            struck = folder / algorithm
            kill_and_resume(words, struck, moments(len(algorithm), kills, rounds))
            try:
                assert_same_run(struck, whole)
            except AssertionError:
                wrong.append(algorithm)
            print(f"{algorithm}: {kills} kills", file=sys.stderr, flush=True)
            shutil.rmtree(struck)
    return Found(
        f"`kill -9`, then `--resume`: {', '.join(runs)}",
        kills * len(runs),
        len(wrong),
        ", ".join(wrong) or "bit-equal",
    )


def _runs(folder: Path) -> dict[str, tuple[str, int]]:
    """What is typed, and how many rounds it logs. Makes the data and the models to start from."""
    start = trained(SFT, folder / "start")
    choosing = trained(CHOOSING, folder / "choosing")
    data = trained(
        "collect --policy random --episodes 96 --shard 48 --environment.id Bandit "
        "--prompt.format action_only",
        folder / "data",
    )
    stored = f"--data {data} --model tiny {OFFLINE}"
    ppo = f"{PPO} --model {start}"
    return {
        "sft": (SFT, 10),
        "ppo": (ppo, PPO_ITERATIONS),
        "gigpo": (f"{ppo} --advantage gigpo --group-size 4 --total-steps 800", PPO_ITERATIONS),
        "dpo": (f"{DPO} --model {choosing} {DPO_TRAJECTORY}", PPO_ITERATIONS),
        "q-sft": (f"train q-sft {stored}", 24),
        "ilql": (f"train ilql {stored}", 24),
        "archer": (f"train archer {stored}", 36),
        "q-transformer": (f"train q-transformer {stored}", 12),
    }


ATTACKS: dict[str, tuple[Callable[[int], Found], int]] = {
    "workers": (killed_workers, 40),
    "values": (hostile_values, 5),
    "checkpoints": (flipped_checkpoints, 200),
    "shards": (flipped_shards, 200),
    "results": (flipped_results, 500),
    "runs": (killed_runs, 10),
}
"""With as many tries as docs/reliability.md tells of."""


def main() -> None:
    print("| attack | tries | did harm | |\n|---|---|---|---|", flush=True)
    for name in sys.argv[1:] or ATTACKS:
        attack, tries = ATTACKS[name]
        try:
            print(attack(tries).row, flush=True)
        except ForethoughtError as error:
            print(f"| {name} | {tries} | ended with: {error} | |", flush=True)


if __name__ == "__main__":
    main()
