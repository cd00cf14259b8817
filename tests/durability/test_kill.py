"""`kill -9`, then `--resume`: the run ends as if nobody had stopped it, to the last bit."""

import signal
from pathlib import Path

import numpy as np
import psutil
import pytest

from forethought.runs.metrics import read_metrics
from tests.durability.commands import TIMEOUT_S, Strike, pause, run, start
from tests.durability.comparison import assert_same_run
from tests.durability.conftest import PPO_ITERATIONS, SFT, resumed, trained
from tests.durability.kills import kill_and_resume, moments
from tests.skips import with_minigrid
from tests.unit.environments.manipulation.renderer import draws

pytestmark = pytest.mark.slow


def test_ppo_killed_at_ten_random_moments(ppo: str, whole_ppo: Path, tmp_path: Path) -> None:
    kill_and_resume(ppo, tmp_path / "ppo", moments(0, 10, PPO_ITERATIONS))
    assert_same_run(tmp_path / "ppo", whole_ppo)


def test_sft_killed_at_three_random_moments(whole_sft: Path, tmp_path: Path) -> None:
    kill_and_resume(SFT, tmp_path / "sft", moments(1, 3, 10))
    assert_same_run(tmp_path / "sft", whole_sft)


def test_sft_by_muon_killed_at_three_random_moments(tmp_path: Path) -> None:
    words = f"{SFT} --optimizer.algorithm muon"
    whole = trained(words, tmp_path / "whole")
    kill_and_resume(words, tmp_path / "sft", moments(4, 3, 10))
    assert_same_run(tmp_path / "sft", whole)


def test_ppo_in_groups_killed_at_three_random_moments(ppo: str, tmp_path: Path) -> None:
    """Rounds of whole episodes: what a slot plays next is not what it would play in turn."""
    words = f"{ppo} --advantage gigpo --group-size 4 --total-steps 800"
    whole = trained(words, tmp_path / "whole")
    kill_and_resume(words, tmp_path / "ppo", moments(2, 3, PPO_ITERATIONS))
    assert_same_run(tmp_path / "ppo", whole)


@pytest.mark.parametrize("use", ["loss", "reward"])
def test_ppo_held_to_its_start_killed_at_three_random_moments(
    ppo: str, tmp_path: Path, use: str
) -> None:
    """The start is no longer the policy when the run goes on."""
    words = f"{ppo} --kl-coefficient 0.1 --kl-use {use}"
    whole = trained(words, tmp_path / "whole")
    kill_and_resume(words, tmp_path / "ppo", moments(3, 3, PPO_ITERATIONS))
    assert_same_run(tmp_path / "ppo", whole)


@pytest.mark.parametrize(
    "environment",
    [
        "WebShop --environment.options view=text_rich per_page=2",
        "Sokoban --environment.options view=text",
        "Chess --environment.options start=kqk board=pieces notation=san",
        "gym:FrozenLake-v1",
        pytest.param("gym:minigrid:BabyAI-GoToRedBall-v0", marks=with_minigrid),
        pytest.param("Manipulation --environment.options image_size=48", marks=draws),
    ],
)
def test_ppo_in_another_environment_killed_at_two_random_moments(
    tmp_path: Path, environment: str
) -> None:
    """The shop is opened again, the arm is where it was: by replaying the actions."""
    words = f"--environment.id {environment} --model {{}} --compute.threads 1"
    sft = f"train sft {words.format('tiny-small')} --expert-steps 40 --batch-size 20"
    model = trained(sft, tmp_path / "sft")
    words = (
        f"train ppo {words.format(model)} --total-steps 96 --rollout.num-envs 4 --batch-size 8 "
        "--rollout.steps-per-iteration 16 --epochs 1 --rollout.max-new-tokens 12 "
        "--checkpoint-every 2"
    )
    whole = trained(words, tmp_path / "whole")
    kill_and_resume(words, tmp_path / "ppo", moments(5, 2, 6))
    assert_same_run(tmp_path / "ppo", whole)


def test_ppo_killed_without_its_worker_processes(ppo: str, whole_ppo: Path, tmp_path: Path) -> None:
    """They notice, and end. Where environments are hosted decides nothing but the order in which
    they reply, thus who shares a batch with whom, thus the last bits, thus, in time, a token."""
    folder, words = tmp_path / "ppo", f"{ppo} --environment.workers 2"
    with start(resumed(words, folder)) as process:
        while not (folder / "checkpoints" / "step_4").exists():
            pause(process)
        workers = psutil.Process(process.pid).children()
        process.kill()
    finished = run(resumed(words, folder))
    assert finished.code == 0, finished.err
    assert len(workers) >= 2
    assert not psutil.wait_procs(workers, timeout=TIMEOUT_S)[1]
    log, expected = (read_metrics(run / "metrics.jsonl") for run in (folder, whole_ppo))
    assert log.steps.tolist() == expected.steps.tolist()
    for name in ("episodes", "success_rate", "mean_reward", "thought_logprob"):
        ours, theirs = log.column(name).values, expected.column(name).values
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-3)


WRITING = [
    ("forethought.durable:published", 1),  # who holds the folder
    ("forethought.durable:published", 2),  # its settings
    ("forethought.durable:published", 3),  # the versions
    ("forethought.runs.metrics:MetricsLog.log", 1),
    ("forethought.runs.metrics:MetricsLog.log_timing", 1),
    ("forethought.rollouts.store:published", 1),  # a shard's temporary file is there, empty
    ("forethought.durable:publish", 4),  # the first shard is complete, and has no name yet
    ("forethought.training.run:write_checkpoint", 1),
    ("forethought.training.state:save_file", 1),  # the model is written, the optimizer is not
    ("forethought.runs.checkpoints:publish", 1),  # all of the first checkpoint, but its name
    ("forethought.runs.checkpoints:publish", 2),  # the second; the first is there
    ("forethought.durable:flush", 20),  # somewhere in the middle of flushing
    ("forethought.runs.checkpoints:list_checkpoints", 6),  # a third one is there
    ("shutil:rmtree", 1),  # before the oldest goes
    ("os:rmdir", 1),  # its model's files are gone, the folder is not
]
"""Places in the writing of a run, in the order in which one comes by."""


def test_ppo_killed_while_it_writes(ppo: str, whole_ppo: Path, tmp_path: Path) -> None:
    """One run, killed at each of these places in turn; each is reached after the last resume."""
    folder = tmp_path / "ppo"
    for place, call in WRITING:
        killed = run(resumed(ppo, folder), strike=Strike(place, call, signal.SIGKILL))
        assert killed.code == -signal.SIGKILL, (place, killed.err)
    finished = run(resumed(ppo, folder))
    assert finished.code == 0, finished.err
    assert_same_run(folder, whole_ppo)
