"""Ctrl-C at any time: one line that says how to go on, and nothing is lost."""

import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from tests.durability.commands import TIMEOUT_S, Outcome, Strike, pause, run, start
from tests.durability.comparison import assert_same_run
from tests.durability.conftest import SFT, resumed

pytestmark = pytest.mark.slow

START_OVER = "there is no checkpoint yet; start over with"
GO_ON = "continue with"

SFT_PHASES = [
    ("forethought.training.start:tiny_with", 1, START_OVER),
    ("forethought.algorithms.sft.train:to_example", 50, START_OVER),  # demonstrations
    ("forethought.offline.rows:build_batch", 8, GO_ON),  # after the third update
    ("accelerate:Accelerator.backward", 2, GO_ON),
    ("forethought.training.state:save_file", 1, GO_ON),
    ("forethought.runs.checkpoints:publish", 1, GO_ON),
]
PPO_PHASES = [
    ("forethought.training.start:load_pretrained", 1, START_OVER),
    ("forethought.prompts.history:parse_response", 40, GO_ON),  # in the third iteration
    ("forethought.algorithms.ppo.train:recompute_logprobs", 1, GO_ON),
    ("forethought.algorithms.ppo.updates:policy_loss", 9, GO_ON),
    ("accelerate:Accelerator.backward", 5, GO_ON),
    ("forethought.runs.metrics:MetricsLog.log_timing", 2, GO_ON),
    ("forethought.training.run:write_shard", 2, GO_ON),
    ("forethought.training.run:write_checkpoint", 1, GO_ON),
    ("forethought.durable:flush", 16, GO_ON),
    ("shutil:rmtree", 1, GO_ON),
]
"""Where a training command is interrupted, one after the other."""


def interrupt_and_resume(words: str, folder: Path, phases: list[tuple[str, int, str]]) -> None:
    train = " ".join(words.split()[:2])
    for place, call, way_on in phases:
        stopped = run(resumed(words, folder), strike=Strike(place, call, signal.SIGINT))
        assert stopped.code == 130, (place, stopped.err)
        # Above it, a warning may say that the first iteration's responses were all invalid.
        assert stopped.lines[-1] == f"interrupted; {way_on}: forethought {train} --resume {folder}"
        assert not stopped.out
    finished = run(resumed(words, folder))
    assert finished.code == 0, finished.err


def test_sft_in_each_phase(whole_sft: Path, tmp_path: Path) -> None:
    interrupt_and_resume(SFT, tmp_path / "sft", SFT_PHASES)
    assert_same_run(tmp_path / "sft", whole_sft)


def test_ppo_in_each_phase(ppo: str, whole_ppo: Path, tmp_path: Path) -> None:
    interrupt_and_resume(ppo, tmp_path / "ppo", PPO_PHASES)
    assert_same_run(tmp_path / "ppo", whole_ppo)


def test_while_the_libraries_are_loaded(tmp_path: Path) -> None:
    """In the real command, as soon as torch's own library is there."""
    with start(f"{SFT} --output {tmp_path / 'sft'}") as process:
        maps = Path(f"/proc/{process.pid}/maps")
        while "libtorch_cpu" not in maps.read_text():
            pause(process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == b"interrupted\n"
    assert process.returncode == 130
    assert not (tmp_path / "sft").exists()


@pytest.mark.parametrize("moment", ["when they start", "when they play"])
def test_with_worker_processes(ppo: str, tmp_path: Path, moment: str) -> None:
    """A terminal sends Ctrl-C to all of them; one of them answers."""
    folder = tmp_path / "ppo"
    with start(f"{ppo} --environment.workers 2 --output {folder}") as process:
        parent = psutil.Process(process.pid)
        while len(workers := parent.children()) < 3:  # two, and what multiprocessing adds
            pause(process)
        while moment == "when they play" and not (folder / "checkpoints" / "step_2").exists():
            pause(process)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert process.returncode == 130
    way_on = START_OVER if moment == "when they start" else GO_ON
    last = Outcome(130, "", said).lines[-1]
    assert last == f"interrupted; {way_on}: forethought train ppo --resume {folder}"
    assert not psutil.wait_procs(workers, timeout=TIMEOUT_S)[1]


@pytest.mark.parametrize(
    ("place", "call"),
    [
        pytest.param("forethought.generation.huggingface:load_pretrained", 1, id="loading"),
        pytest.param("forethought.prompts.history:parse_response", 9, id="playing"),
        pytest.param("forethought.evaluation.evaluate:row_of", 1, id="counting"),
        pytest.param("forethought.agents.evaluating:write_shard", 1, id="writing"),
    ],
)
def test_evaluation(whole_sft: Path, tmp_path: Path, place: str, call: int) -> None:
    folder = shutil.copytree(whole_sft, tmp_path / "sft")
    words = f"evaluate {folder} --episodes 8 --max-new-tokens 8 --threads 1"
    stopped = run(words, strike=Strike(place, call, signal.SIGTERM))
    assert stopped.code == 143, stopped.err
    assert stopped.lines == ["interrupted"]
    assert not list(folder.glob("evaluation*"))
    assert run(words).code == 0
    assert_same_run(folder, whole_sft)
