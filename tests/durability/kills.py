"""`kill -9` at moments of training, each followed by `--resume`."""

import random
import signal
import subprocess
import time
from pathlib import Path

from tests.durability.commands import pause, start
from tests.durability.conftest import resumed


def moments(seed: int, kills: int, rounds: int) -> list[float]:
    """Of a run that is killed again and again, ascending, in rounds of its training loop: -0.5
    while it is being loaded, 3.25 a quarter through the fourth round. The first is before
    the first round; the last leaves a round to be done."""
    generator = random.Random(seed)
    inside = (generator.uniform(0, rounds - 2) for _ in range(kills - 1))
    return sorted([-generator.random(), *inside])


def kill_at(process: subprocess.Popen[bytes], folder: Path, moment: float, round_s: float) -> float:
    """Kills a training command when it has come so far.

    Args:
        round_s: what a round takes, as far as is known.

    Returns:
        What a round took here: the machine may be busy with other things.
    """
    if moment < 0:
        time.sleep((moment + 1) * 4.0)  # Loading takes longer than that.
    else:
        # TensorBoard's file carries the process's number. It is made when the other logs
        # have been cut back to the checkpoint, so that from now on their lines count.
        while not list(folder.glob(f"tensorboard/*.{process.pid}.*")):
            pause(process)
        done, since = lines_of(folder), time.monotonic()
        while done < int(moment):
            pause(process)
            if lines_of(folder) > done:
                round_s, since = time.monotonic() - since, time.monotonic()
                done = lines_of(folder)
        until = time.monotonic() + moment % 1 * round_s
        while time.monotonic() < until and lines_of(folder) == done:
            pause(process)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "ended before it was killed"
    return round_s


def lines_of(folder: Path) -> int:
    return (folder / "metrics.jsonl").read_bytes().count(b"\n")


def kill_and_resume(words: str, folder: Path, when: list[float]) -> None:
    round_s = 0.5
    for moment in when:
        with start(resumed(words, folder)) as process:
            round_s = kill_at(process, folder, moment, round_s)
    with start(resumed(words, folder)) as process:
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert process.returncode == 0, said
