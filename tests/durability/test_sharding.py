"""Two processes that share the weights among them learn what one learns, and leave its files."""

import shutil
from pathlib import Path

import pytest

from forethought.generation.published import read_current
from forethought.runs.checkpoints import model_source
from tests.durability.commands import TIMEOUT_S, run
from tests.durability.comparison import largest, largest_difference, weights
from tests.durability.conftest import SFT, trained
from tests.durability.test_processes import (
    LORA,
    MUON,
    SHARDED,
    SHORT_PPO,
    TOLERANCE,
    launch,
    launched,
)
from tests.engines import engine_of

pytestmark = pytest.mark.slow

IN_CHUNKS = """
import sys

import forethought.models.actor_critic
from forethought.cli.main import main

forethought.models.actor_critic.LARGEST = 2**14
sys.exit(main())
"""
"""The command with logits of a few tokens at a time, as vocabularies of 50,000 words need it."""
BANDIT = (
    "train sft --environment.id Bandit --model tiny-small --expert-steps 320 --batch-size 16 "
    "--optimizer.learning-rate 2e-3 --compute.threads 1"
)
ROUNDING = 1e-4
"""Largest difference of a weight after four iterations of PPO, whose sums are of another order."""
SMOOTH = " --optimizer.epsilon 1e-4"
"""Adam then takes no step where a gradient is only the rounding of a sum."""
DPO = (
    "train dpo --environment.id Bandit --loss-type sigmoid --pair-reward reward "
    "--total-steps 48 --rollout.num-envs 12 --rollout.steps-per-iteration 24 "
    f"--rollout.max-new-tokens 40 --rollout.temperature 1.0 --batch-size 3 --epochs 1{SMOOTH} "
    "--group-size 4 --optimizer.learning-rate 1e-4 --compute.threads 1"
)


def test_sft_of_all_weights(whole_sft: Path, tmp_path: Path) -> None:
    two = launched(SFT, tmp_path / "two", SHARDED)
    assert largest_difference(whole_sft, two) <= TOLERANCE


def test_sft_of_adapters_in_chunks_of_logits(whole_sft: Path, tmp_path: Path) -> None:
    """Recomputed in the backward pass, as the layers are, with what the shards are gathered to."""
    script = tmp_path / "in_chunks.py"
    script.write_text(IN_CHUNKS, encoding="utf-8")
    words = f"{SFT} --model {whole_sft}{LORA.replace('0.3', '0')} --compute.gradient-checkpointing"
    one = trained(words, tmp_path / "one")
    two = launched(words, tmp_path / "two", SHARDED, (str(script),))
    assert largest_difference(one, two) <= TOLERANCE


def test_ppo_goes_on_with_another_number_of_processes(ppo: str, tmp_path: Path) -> None:
    """Of three steps in a batch, a process often has none: it runs what it saw last for nothing."""
    words = f"{ppo}{SHORT_PPO} --kl-coefficient 0.2 --compute.gradient-checkpointing{SMOOTH}"
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two", SHARDED)
    assert largest_difference(one, two) <= ROUNDING
    shutil.rmtree(two / "checkpoints" / "step_4")
    assert run(f"train ppo --resume {two}").code == 0
    assert largest_difference(one, two) <= ROUNDING

    shutil.rmtree(one / "checkpoints" / "step_4")
    with launch(f"train ppo --resume {one}", SHARDED) as process:
        _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, said
    assert largest_difference(one, two) <= ROUNDING


def test_dpo(tmp_path: Path) -> None:
    words = f"{DPO} --model {trained(BANDIT, tmp_path / 'sft')}"
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two", SHARDED)
    assert largest_difference(one, two) <= TOLERANCE


def test_an_engine_writes_for_both(ppo: str, whole_sft: Path, tmp_path: Path) -> None:
    """The first process publishes what both have; responses are those of one process alone."""
    words = f"{ppo}{SHORT_PPO}{SMOOTH}"
    one = trained(words, tmp_path / "one")
    with engine_of(Path(model_source(str(whole_sft))), tmp_path / "two") as url:
        two = launched(f"{words} --generation.engine {url}", tmp_path / "two", SHARDED)
    assert largest_difference(one, two) <= ROUNDING
    (published,) = read_current(two / "published")
    assert published.version == 3  # Nobody writes after the fourth iteration's updates.


def test_q_sft_goes_on_with_another_number_of_processes(tmp_path: Path) -> None:
    """Three phases of three updates, the last two of the same model; it is copied between phases
    and stopped in the middle of one."""
    words = "--environment.id Wordle --prompt.format action_only"
    assert run(f"collect --policy data {words} --episodes 9 --output {tmp_path}/data").code == 0
    words = (
        f"train q-sft --data {tmp_path}/data {words} --batch-size 3 --compute.threads 1 "
        f"--mc-epochs 1 --checkpoint-every 4 --optimizer.warmup-steps 0{SMOOTH}"
    )
    one, two = trained(words, tmp_path / "one"), launched(words, tmp_path / "two", SHARDED)
    assert largest_difference(one, two) <= TOLERANCE
    before = weights(trained(f"{words} --epochs 0.1", tmp_path / "before"))
    after = weights(one)
    assert max(map(largest, (after[name] - before[name] for name in before))) > 100 * TOLERANCE

    for folder in (one, two):
        shutil.rmtree(folder / "checkpoints" / "step_9")
    assert run(f"train q-sft --resume {two}").code == 0
    with launch(f"train q-sft --resume {one}", SHARDED) as process:
        _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, said
    whole = weights(two)
    assert all(largest(whole[name] - after[name]) <= TOLERANCE for name in after)
    assert largest_difference(one, two) <= TOLERANCE

    with launch(f"{words} --phases joint --output {tmp_path}/joint", SHARDED) as process:
        _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode != 0
    assert "error: accelerate launched FSDP, but what this run trains is not one model" in said
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
