"""Two processes that share the weights, or their moments, among them learn what one learns, and
leave its files."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from forethought.generation.published import read_current
from forethought.runs.checkpoints import model_source
from forethought.runs.metrics import read_metrics
from forethought.training.zero import INSTALL
from tests.durability.commands import TIMEOUT_S, run
from tests.durability.comparison import (
    iterations_with_pairs,
    largest,
    largest_difference,
    weights,
)
from tests.durability.conftest import CHOOSING, SFT, trained
from tests.durability.test_processes import (
    LORA,
    MUON,
    PARTITIONED,
    SHARDED,
    SHORT_PPO,
    TOLERANCE,
    launch,
    launched,
)
from tests.engines import engine_of
from tests.skips import needs
from tests.typed import words_of

pytestmark = pytest.mark.slow

IN_CHUNKS = """
import sys

import forethought.models.actor_critic
from forethought.cli.main import main

forethought.models.actor_critic.LARGEST = 2**14
sys.exit(main())
"""
"""The command with logits of a few tokens at a time, as vocabularies of 50,000 words need it."""
ZERO = """
distributed_type: DEEPSPEED
num_processes: 2
deepspeed_config:
  zero_stage: 2
"""
ROUNDING = 1e-4
"""Largest difference of a weight after four iterations of PPO, whose sums are of another order."""
SMOOTH = " --optimizer.epsilon 1e-4"
"""Adam then takes no step where a gradient is only the rounding of a sum."""
SLOW = " --optimizer.learning-rate 3e-5"
"""At ten times the rate the model is 200,000 nats from its reference after six updates, and what a
rounding does to it is seen in every weight four iterations later."""
DPO = (
    "train dpo --environment.id Bandit --loss-type sigmoid --pair-reward reward "
    "--total-steps 48 --rollout.num-envs 12 --rollout.steps-per-iteration 24 "
    f"--rollout.max-new-tokens 40 --rollout.temperature 1.0 --batch-size 3 --epochs 1{SMOOTH} "
    "--group-size 4 --optimizer.learning-rate 1e-4 --compute.threads 1"
)

with_deepspeed = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None, reason=needs("DeepSpeed", INSTALL)
)
both = pytest.mark.parametrize(
    "settings",
    [
        pytest.param(SHARDED, id="fsdp"),
        pytest.param(PARTITIONED, id="deepspeed", marks=with_deepspeed),
    ],
)
"""The ways to divide."""


def test_sft_of_all_weights(whole_sft: Path, tmp_path: Path) -> None:
    two = launched(SFT, tmp_path / "two", SHARDED)
    assert largest_difference(whole_sft, two) <= TOLERANCE


@with_deepspeed
def test_sft_of_all_weights_by_accelerates_own_launch(whole_sft: Path, tmp_path: Path) -> None:
    config = tmp_path / "zero.yaml"
    config.write_text(ZERO, encoding="utf-8")
    launcher = f"-m accelerate.commands.launch --config_file {config} -m forethought"
    done = subprocess.run(
        [sys.executable, *launcher.split(), *words_of(f"{SFT} --output {tmp_path}/two")],
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    assert largest_difference(whole_sft, tmp_path / "two") <= TOLERANCE


@both
def test_sft_of_adapters_in_chunks_of_logits(
    settings: Mapping[str, str], whole_sft: Path, tmp_path: Path
) -> None:
    """Recomputed in the backward pass, as the layers are, with what the shards are gathered to."""
    script = tmp_path / "in_chunks.py"
    script.write_text(IN_CHUNKS, encoding="utf-8")
    words = f"{SFT} --model {whole_sft}{LORA.replace('0.3', '0')} --compute.gradient-checkpointing"
    one = trained(words, tmp_path / "one")
    two = launched(words, tmp_path / "two", settings, (str(script),))
    assert largest_difference(one, two) <= TOLERANCE


@both
def test_sft_in_bf16(settings: Mapping[str, str], tmp_path: Path) -> None:
    """The rows of a pass, and so its rounding, are not those of one process: what is learned is
    nearer to that than to what fp32 learns."""
    words = f"{SFT} --compute.precision bf16{SMOOTH}"
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two", settings)
    exact = trained(f"{SFT}{SMOOTH}", tmp_path / "exact")
    assert largest_difference(one, two) <= largest_difference(one, exact) / 2


@both
def test_ppo_goes_on_with_another_number_of_processes(
    settings: Mapping[str, str], ppo: str, tmp_path: Path
) -> None:
    """Of three steps in a batch, a process often has none: with FSDP it runs what it saw last for
    nothing, and while the critic warms up it passes back through the head alone, as others do."""
    words = (
        f"{ppo}{SHORT_PPO} --kl-coefficient 0.2 --critic-warmup 1 "
        f"--compute.gradient-checkpointing{SMOOTH}{SLOW}"
    )
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two", settings)
    assert largest_difference(one, two) <= ROUNDING
    shutil.rmtree(two / "checkpoints" / "step_4")
    assert run(f"train ppo --resume {two}").code == 0
    assert largest_difference(one, two) <= ROUNDING

    shutil.rmtree(one / "checkpoints" / "step_4")
    with launch(f"train ppo --resume {one}", settings) as process:
        _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, said
    assert largest_difference(one, two) <= ROUNDING


@both
def test_ppo_of_one_update(settings: Mapping[str, str], ppo: str, tmp_path: Path) -> None:
    """The update scores its own responses, and all processes know the largest mismatch."""
    words = f"{ppo} --total-steps 64 --batch-size 16{SMOOTH}{SLOW}"
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two", settings)
    assert largest_difference(one, two) <= ROUNDING
    errors = read_metrics(two / "metrics.jsonl").column("max_ratio_error").values
    assert len(errors) == 4
    assert all(0 < error < 1e-4 for error in errors)


@both
def test_dpo(settings: Mapping[str, str], tmp_path: Path) -> None:
    """As two processes that divide nothing: each makes pairs of what it has played itself, so that
    one process learns others."""
    words = f"{DPO} --model {trained(CHOOSING, tmp_path / 'sft')}"
    whole, two = launched(words, tmp_path / "whole"), launched(words, tmp_path / "two", settings)
    assert iterations_with_pairs(whole) == 2
    assert largest_difference(whole, two) <= TOLERANCE


def test_an_engine_writes_for_both(ppo: str, whole_sft: Path, tmp_path: Path) -> None:
    """The first process publishes what both have; responses are those of one process alone."""
    words = f"{ppo}{SHORT_PPO}{SMOOTH}"
    one = trained(words, tmp_path / "one")
    with engine_of(Path(model_source(str(whole_sft))), tmp_path / "two") as url:
        two = launched(f"{words} --generation.engine {url}", tmp_path / "two", SHARDED)
    assert largest_difference(one, two) <= ROUNDING
    (published,) = read_current(two / "published")
    assert published.version == 3  # Nobody writes after the fourth iteration's updates.


@both
def test_q_sft_goes_on_with_another_number_of_processes(
    settings: Mapping[str, str], tmp_path: Path
) -> None:
    """Three phases of three updates, the last two of the same model; it is copied between phases
    and stopped in the middle of one."""
    words = "--environment.id Wordle --prompt.format action_only"
    assert run(f"collect --policy data {words} --episodes 9 --output {tmp_path}/data").code == 0
    words = (
        f"train q-sft --data {tmp_path}/data {words} --batch-size 3 --compute.threads 1 "
        f"--mc-epochs 1 --checkpoint-every 4 --optimizer.warmup-steps 0{SMOOTH}"
    )
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two", settings)
    assert largest_difference(one, two) <= TOLERANCE
    before = weights(trained(f"{words} --epochs 0.1", tmp_path / "before"))
    after = weights(one)
    assert max(map(largest, (after[name] - before[name] for name in before))) > 100 * TOLERANCE

    for folder in (one, two):
        shutil.rmtree(folder / "checkpoints" / "step_9")
    assert run(f"train q-sft --resume {two}").code == 0
    with launch(f"train q-sft --resume {one}", settings) as process:
        _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, said
    whole = weights(two)
    assert all(largest(whole[name] - after[name]) <= TOLERANCE for name in after)
    assert largest_difference(one, two) <= TOLERANCE

    with launch(f"{words} --phases joint --output {tmp_path}/joint", settings) as process:
        _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode != 0
    assert re.search(
        "error: accelerate launched (FSDP|DEEPSPEED), but what this run trains is not one model",
        said,
    )
    assert not (tmp_path / "joint").exists()


@pytest.mark.parametrize(
    ("more", "settings", "said"),
    [
        (MUON, {}, "optimizer.algorithm is 'muon', which needs whole matrices"),
        (
            "",
            {"FSDP_VERSION": "1"},
            "accelerate launched FSDP version 1 — expected fsdp_version: 2",
        ),
    ],
)
def test_what_is_refused(more: str, settings: dict[str, str], said: str, tmp_path: Path) -> None:
    with launch(f"{SFT}{more} --output {tmp_path}/run", SHARDED | settings) as process:
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode != 0
    assert f"error: {said}" in err
    assert "forethought/training" not in err
