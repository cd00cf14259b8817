"""Two processes learn what one learns; so does a run that changes from two to one."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from forethought.rollouts.store import read_shard
from tests.durability.commands import TIMEOUT_S, pause, run, start
from tests.durability.comparison import assert_same_run, largest, largest_difference, weights
from tests.durability.conftest import SFT, resumed, trained
from tests.typed import words_of

pytestmark = pytest.mark.slow

TOLERANCE = 1e-5
"""Of any weight. Processes add up in another order, and the optimizer divides by small numbers."""

SHORT_PPO = " --total-steps 64 --batch-size 3 --optimizer.epsilon 1e-5"
"""Four iterations of six updates. Of three steps, a process often has none. Adam is not to make
a large step of a gradient that is nothing but rounding."""
FORETHOUGHT = ("-m", "forethought")
LORA = " --lora.components language_model --lora.rank 4 --lora.dropout 0.3"


SHARDED = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
}
"""What `accelerate launch` says to its processes where its config asks for FSDP2."""
PARTITIONED = {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"}
"""The same of a config that asks for DeepSpeed."""
MUON = " --optimizer.algorithm muon"


def launch(
    words: str, settings: Mapping[str, str] | None = None, program: tuple[str, ...] = FORETHOUGHT
) -> subprocess.Popen[str]:
    """The command in two processes, under way; all of them are one group."""
    launcher = "-m torch.distributed.run --standalone --nproc_per_node 2"
    threads = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    return subprocess.Popen(
        [sys.executable, *launcher.split(), *program, *words_of(words)],
        env=os.environ | threads | {"HF_HUB_OFFLINE": "1"} | dict(settings or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def launched(
    words: str,
    folder: Path,
    settings: Mapping[str, str] | None = None,
    program: tuple[str, ...] = FORETHOUGHT,
) -> Path:
    with launch(f"{words} --output {folder}", settings, program) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    assert out == f"{folder}\nnext: forethought evaluate {folder}\n"  # one of them speaks
    return folder


def test_ppo(ppo: str, whole_sft: Path, tmp_path: Path) -> None:
    words = ppo + SHORT_PPO
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two")
    assert largest_difference(one, two) <= TOLERANCE
    before, after = weights(whole_sft), weights(one)  # the latter has a critic besides
    assert max(map(largest, (after[name] - before[name] for name in before))) > 100 * TOLERANCE
    for step in range(1, 5):
        shard = tmp_path / "two" / "trajectories" / f"step_{step:06d}_process_0.parquet"
        halves = [read_shard(shard.with_stem(f"step_{step:06d}_process_{i}")) for i in (0, 1)]
        whole = read_shard(tmp_path / "one" / "trajectories" / shard.name)
        assert [t.seed for half in halves for t in half] == [t.seed for t in whole]

    shutil.rmtree(two / "checkpoints" / "step_4")
    assert run(f"train ppo --resume {two}").code == 0
    assert largest_difference(one, two) <= TOLERANCE
    again = (two / "trajectories").glob("step_000004_*")
    assert [path.name for path in again] == ["step_000004_process_0.parquet"]


def test_sft(whole_sft: Path, tmp_path: Path) -> None:
    assert largest_difference(whole_sft, launched(SFT, tmp_path / "two")) <= TOLERANCE


def test_q_sft(tmp_path: Path) -> None:
    """Two phases of three updates, each of two episodes for one process and one for the other."""
    words = "--environment.id Wordle --prompt.format action_only"
    assert run(f"collect --policy data {words} --episodes 9 --output {tmp_path}/data").code == 0
    words = (
        f"train q-sft --data {tmp_path}/data {words} --batch-size 3 --compute.threads 1 "
        "--optimizer.warmup-steps 0 --optimizer.epsilon 1e-4"
    )
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two")
    assert largest_difference(one, two) <= TOLERANCE


def test_archer(tmp_path: Path) -> None:
    """Three phases of three updates, each of two episodes for one process and one for the other."""
    words = "--environment.id Wordle --prompt.format action_only"
    assert run(f"collect --policy data {words} --episodes 9 --output {tmp_path}/data").code == 0
    words = (
        f"train archer --data {tmp_path}/data {words} --batch-size 3 --beta 2 --compute.threads 1 "
        "--optimizer.warmup-steps 0 --optimizer.epsilon 1e-4"
    )
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two")
    assert largest_difference(one, two) <= TOLERANCE
    before = weights(trained(f"{words} --actor-epochs 0.1", tmp_path / "before"))
    after = weights(one)
    assert max(map(largest, (after[name] - before[name] for name in before))) > 10 * TOLERANCE


def test_sft_with_dropout_killed_and_resumed(whole_sft: Path, tmp_path: Path) -> None:
    """Every process draws its own dropout, and goes on drawing where it was."""
    words = f"{SFT} --model {whole_sft}{LORA}"
    whole, folder = launched(words, tmp_path / "whole"), tmp_path / "killed"
    with launch(resumed(words, folder)) as process:
        while not (folder / "checkpoints" / "step_6").exists():
            pause(process)
        os.killpg(process.pid, signal.SIGKILL)
    with launch(resumed(words, folder)) as process:
        _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, said
    assert_same_run(folder, whole)


def test_without_a_launcher(whole_sft: Path, tmp_path: Path) -> None:
    """`--processes 2`: Ctrl-C and resume are those of one process, and so are the weights."""
    folder = tmp_path / "two"
    process = start(f"{resumed(SFT, folder)} --processes 2")
    while not (folder / "checkpoints" / "step_6").exists():
        pause(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    lines = err.decode().splitlines()
    assert process.returncode == 130, lines
    assert lines[-1].endswith(f"continue with: forethought train sft --resume {folder}")
    assert not [line for line in lines if "Traceback" in line]

    process = start(f"train sft --resume {folder} --processes 2")
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err.decode()
    assert largest_difference(whole_sft, folder) <= TOLERANCE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"{SFT} --processes 0", "error: --processes is 0 — expected 1 or more"),
        (
            f"{SFT} --model nowhere --processes 2",
            "error: model 'nowhere' does not exist here",
        ),
        (
            "train ppo --model {sft} --rollout.num-envs 3 --rollout.steps-per-iteration 9 "
            "--batch-size 9 --processes 2",
            "error: rollout.num_envs is 3 — expected a multiple of the number of processes, 2",
        ),
    ],
)
def test_errors_without_a_launcher(words: str, said: str, whole_sft: Path, tmp_path: Path) -> None:
    """One line, whether this process finds it or those that it starts. Where the second of these
    is faster, it is named, and the first may say that it was interrupted."""
    process = start(f"{words.format(sft=whole_sft)} --output {tmp_path}/run")
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 2
    *others, line = err.decode().splitlines()
    assert line.removeprefix("process 1: ").startswith(said)
    assert [other[:11] for other in others] in ([], ["interrupted"])
    assert not others or line.startswith("process 1: ")
