"""A prompt that the model has no positions for is refused before anything attends to it: by
every command, in one line, whatever wrote it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forethought.cli.main import main
from forethought.environments.bandit import Bandit
from forethought.errors import PromptTooLongError
from forethought.generation.huggingface import load_policy
from forethought.offline.rows import to_example
from forethought.rollouts.store import read_shards
from forethought.runs.checkpoints import model_source
from forethought.types import Observation
from tests.typed import words_of

LENGTH = 1_000_000
"""Characters: PPO took ten minutes and gigabytes over such an observation."""
ENVIRONMENT_ID = f"{__name__}:Talkative"
ENVIRONMENT = f"--environment.id {ENVIRONMENT_ID}"
SMALL = "--rollout.num-envs 2 --rollout.steps-per-iteration 4 --total-steps 8 --batch-size 4"


class Talkative(Bandit):
    """A bandit that may say a great deal before it comes to the point."""

    def __init__(self, length: int = LENGTH, **options: Any) -> None:
        super().__init__(**options)
        self._length = length

    def observation(self) -> Observation:
        told = super().observation()
        words = "so it is said " * (self._length // 14)
        return Observation(f"{words}{told.text}", None, None, told.state_key, told.goal, "Bandit")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that has learned the bandit a little."""
    folder = tmp_path_factory.mktemp("runs") / "sft"
    words = f"train sft --model tiny-small --output {folder} --environment.id Bandit"
    assert main(words_of(f"{words} --expert-steps 64 --compute.threads 1")) == 0
    return folder


def refusal(words: str, capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    assert main(words_of(words)) == 2
    out, err = capfd.readouterr()
    assert not out
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert "Traceback" not in err
    return lines[0].removeprefix("error: ")


@pytest.mark.parametrize(
    "words",
    [
        f"train ppo --model {{run}} --output {{new}} {SMALL}",
        f"train ppo --model tiny-small --output {{new}} {SMALL}",
        "evaluate {run} --episodes 2",
        "collect --policy {run} --output {new} --episodes 2",
    ],
    ids=["ppo", "ppo from scratch", "evaluate", "collect"],
)
def test_an_environment_that_says_too_much(
    words: str, run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = refusal(f"{words.format(run=run, new=tmp_path / 'new')} {ENVIRONMENT}", capfd)
    place, _, reason = said.partition(": the prompt, a text of 1,000,0")
    assert place in {f"{ENVIRONMENT_ID}, first observation", f"{ENVIRONMENT_ID}, episode 0, step 0"}
    assert re.match(r"\d\d characters, has at least [\d,]+ tokens", reason)
    assert said.endswith(
        " tokens, but the model takes 2,048 positions, completion included — shorten it, or choose "
        "another model"
    )


def test_a_stored_text_that_is_too_long(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert (
        main(words_of(f"collect --policy expert --output {data} --episodes 1 {ENVIRONMENT}")) == 0
    )
    policy = load_policy(model_source(str(run)), slots=1)
    (trajectory,) = read_shards(data)
    with pytest.raises(PromptTooLongError) as info:
        to_example(trajectory.steps[0], policy)
    assert str(info.value).startswith("data, a step in state 'right ")
    assert "but the model takes 2,048 positions" in str(info.value)


def test_a_stored_answer_that_is_too_long(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    words = f"collect --policy expert --output {data} --episodes 1 --environment.id Bandit"
    assert main(words_of(words)) == 0
    policy = load_policy(model_source(str(run)), slots=1)
    (trajectory,) = read_shards(data)
    step = trajectory.steps[0]
    for answer in (
        replace(step.completion, text="said " * 1_000_000),
        replace(step.completion, text="0" * 2040),
    ):
        with pytest.raises(PromptTooLongError, match="but the model takes 2,048 positions"):
            to_example(replace(step, completion=answer), policy)
