"""The only engine of a run without workers is killed: the run waits for it, or ends with a line
and goes on later. Either way it equals the run of one process."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from tests.contract.test_engines import ids_of
from tests.durability.commands import TIMEOUT_S, forked, run, wait_for
from tests.engines import bandit, save_model

pytestmark = pytest.mark.slow

STEPS_PER_ITERATION, ITERATIONS = 16, 4


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("lost") / "model", bandit())


@pytest.fixture(scope="session")
def alone(model: Path) -> Path:
    """The run of one process."""
    folder = model.parent / "alone"
    assert run(training(model, folder)).code == 0
    return folder


def training(model: Path, folder: Path) -> str:
    return (
        f"train ppo --model {model} --output {folder} --environment.id Bandit"
        f" --total-steps {ITERATIONS * STEPS_PER_ITERATION} --rollout.num-envs 8"
        f" --rollout.steps-per-iteration {STEPS_PER_ITERATION} --rollout.temperature 1"
        " --rollout.max-new-tokens 12 --batch-size 16 --epochs 1 --checkpoint-every 1"
        " --compute.threads 1"
    )


@contextmanager
def struck(
    model: Path, folder: Path, patience_s: float
) -> Generator[tuple[ForkServerProcess, str]]:
    """A run whose engine is killed when it has learned once and is in the middle of another
    iteration; the trainer, and the command that serves the engine again."""
    served, serve = folder / "engine.log", f"serve {model} --threads 1 --weights-from {folder}"
    with forked(f"{serve} --port 0", served) as engine:
        wait_for(lambda: served.is_file() and "serving" in served.read_text(), engine.is_alive)
        found = re.search(r"at (http://127.0.0.1:(\d+))/v1", served.read_text())
        assert found is not None
        flags = f" --generation.engine {found[1]} --generation.patience-s {patience_s}"
        words = training(model, folder / "run") + flags + " --generation.concurrency 1"
        with forked(words, folder / "trainer.log") as trainer:
            shards = folder / "run" / "trajectories"
            wait_for(
                lambda: len(list(shards.glob("*.parquet"))) > 0, trainer.is_alive, engine.is_alive
            )
            engine.kill()
            engine.join()
            yield trainer, f"{serve} --port {found[2]}"


def said(folder: Path) -> list[str]:
    """The trainer's lines beside progress bars."""
    text = (folder / "trainer.log").read_text(encoding="utf-8")
    lines = [line.rpartition("\r")[2] for line in text.splitlines()]
    return [line for line in lines if line.startswith(("engine ", "error: "))]


def test_it_is_started_again(model: Path, alone: Path, tmp_path: Path) -> None:
    """Each attempt that failed is a line, and the next one comes after twice the time."""
    with struck(model, tmp_path, patience_s=600) as (trainer, serve):
        wait_for(lambda: len(said(tmp_path)) >= 2, trainer.is_alive)
        with forked(serve, tmp_path / "engine.log") as engine:
            wait_for(lambda: not trainer.is_alive(), engine.is_alive)
            assert trainer.exitcode == 0
    lines = said(tmp_path)
    pauses = [float(line.removesuffix(" s").rpartition(" in ")[2]) for line in lines]
    assert pauses == [min(30.0, 0.5 * 2**n) for n in range(len(lines))]
    assert ids_of(tmp_path / "run") == ids_of(alone)


def test_it_is_not_started_again(model: Path, alone: Path, tmp_path: Path) -> None:
    with struck(model, tmp_path, patience_s=2) as (trainer, serve):
        trainer.join(TIMEOUT_S)
        assert trainer.exitcode == 2
        *others, last = said(tmp_path)
        assert re.fullmatch(
            r"error: no engine answers \(http://127\.0\.0\.1:\d+\); the last problem: Connection "
            r"refused — start one, then go on with --resume",
            last,
        )
        assert all(line.startswith("engine ") for line in others)
        assert len(ids_of(tmp_path / "run")) < len(ids_of(alone))
        with forked(serve, tmp_path / "engine.log"):
            assert run(f"train ppo --resume {tmp_path / 'run'}").code == 0
    assert ids_of(tmp_path / "run") == ids_of(alone)
