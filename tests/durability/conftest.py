"""The runs that nobody stopped: what all others must come to."""

from pathlib import Path

import pytest

from tests.durability.commands import run

SFT = (
    "train sft --environment.id NumberLine --expert-steps 240 --batch-size 24 "
    "--checkpoint-every 3 --compute.threads 1"
)
"""Ten updates of the tiny model, with checkpoints after 3, 6, 9 and 10."""
PPO = (
    "train ppo --environment.id NumberLine --environment.image-size 64 --total-steps 192 "
    "--rollout.num-envs 8 --rollout.steps-per-iteration 16 --batch-size 8 --epochs 1 "
    "--rollout.max-new-tokens 12 --optimizer.learning-rate 3e-4 --checkpoint-every 2 "
    "--compute.threads 1"
)
"""Twelve iterations of two updates each, with a checkpoint after every second one."""
PPO_ITERATIONS = 12
CHOOSING = (
    "train sft --environment.id Bandit --environment.options expert=random_choice "
    "--expert-steps 1600 --batch-size 16 --optimizer.learning-rate 2e-3 "
    "--optimizer.schedule constant --compute.threads 1"
)
"""A model that answers in the right form and chooses at random: there is always something to
prefer, and something to credit."""
DPO = (
    "train dpo --environment.id Bandit --total-steps 384 --rollout.num-envs 16 "
    "--rollout.steps-per-iteration 32 --rollout.temperature 1.0 --rollout.max-new-tokens 24 "
    "--batch-size 8 --epochs 1 --checkpoint-every 2 --compute.threads 1 "
    "--optimizer.learning-rate 3e-4"
)
"""Twelve iterations from `CHOOSING`."""
DPO_TRAJECTORY = (
    "--pairing trajectory --loss-type sigmoid --ref-model-sync-every 3 "
    "--consistency-reference start --consistency-sides both"
)
"""A reference that moves and one that stays, and pairs in every iteration: with APW, the default,
some iterations have none."""
UNTRAINED = "warning: every response of the first iteration was invalid"
"""Ten updates teach nobody the form of a response; actions are then drawn, and learned from."""


def resumed(words: str, run_folder: Path) -> str:
    """What a person types after a run was stopped: start again where nothing was begun yet."""
    if (run_folder / "config.yaml").exists():
        return f"{' '.join(words.split()[:2])} --resume {run_folder}"
    return f"{words} --output {run_folder}"


def trained(words: str, folder: Path) -> Path:
    outcome = run(f"{words} --output {folder}")
    assert outcome.code == 0, outcome.err
    assert [line for line in outcome.lines if not line.startswith((UNTRAINED, "gym:"))] == []
    return folder


@pytest.fixture(scope="session")
def whole_sft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `SFT`."""
    return trained(SFT, tmp_path_factory.mktemp("durability") / "sft")


@pytest.fixture(scope="session")
def ppo(whole_sft: Path) -> str:
    """What is typed to train on from there, less the output folder."""
    return f"{PPO} --model {whole_sft}"


@pytest.fixture(scope="session")
def whole_ppo(ppo: str, whole_sft: Path) -> Path:
    """A run of `ppo`."""
    return trained(ppo, whole_sft.parent / "ppo")
