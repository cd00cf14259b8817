"""`kill -9` at moments of training, each followed by `--resume`."""

import random
import signal
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.durability.commands import forked, run, start
from tests.durability.conftest import resumed


def moments(seed: int, kills: int, rounds: int) -> list[float]:
    """Of a run that is killed again and again, ascending, in rounds of its training loop: -0.5
    while it is being loaded, 3.25 a quarter through the fourth round. The first is before
    the first round; the last leaves a round to be done."""
    generator = random.Random(seed)
    inside = (generator.uniform(0, rounds - 2) for _ in range(kills - 1))
    return sorted([-generator.random(), *inside])


def kill_at(words: str, folder: Path, moment: float, round_s: float) -> float:
    """Begins a training command, and kills it when it has come so far.

    Args:
        round_s: what a round takes, as far as is known.

    Returns:
        What a round took here: the machine may be busy with other things.
    """
    if moment < 0:  # In the real command, which loads its libraries then.
        with start(words) as loading:
            time.sleep((moment + 1) * 4.0)  # Loading takes longer than that.
            loading.kill()
        assert loading.returncode == -signal.SIGKILL, "ended before it was killed"
        return round_s
    with forked(words) as process:
        # TensorBoard's file carries the process's number. It is made when the other logs
        # have been cut back to the checkpoint, so that from now on their lines count.
        while not list(folder.glob(f"tensorboard/*.{process.pid}.*")):
            _pause(process)
        done, since = lines_of(folder), time.monotonic()
        while done < int(moment):
            _pause(process)
            if lines_of(folder) > done:
                round_s, since = time.monotonic() - since, time.monotonic()
                done = lines_of(folder)
        until = time.monotonic() + moment % 1 * round_s
        while time.monotonic() < until and lines_of(folder) == done:
            _pause(process)
    assert process.exitcode == -signal.SIGKILL, "ended before it was killed"
    return round_s


def _pause(process: ForkServerProcess) -> None:
    assert process.exitcode is None, "ended before it was killed"
    time.sleep(0.005)


def lines_of(folder: Path) -> int:
    return (folder / "metrics.jsonl").read_bytes().count(b"\n")


def kill_and_resume(words: str, folder: Path, when: list[float]) -> None:
    """Kills a run at each of these moments, resumes it each time, and lets it end."""
    round_s = 0.5
    for moment in when:
        round_s = kill_at(resumed(words, folder), folder, moment, round_s)
    finished = run(resumed(words, folder))
    assert finished.code == 0, finished.err
