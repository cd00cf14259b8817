"""What a newcomer meets first: a misspelled environment, a model that has learned nothing yet."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from forethought.training.state import load_progress
from tests.unit.cli.terminal import PPO, Type


@pytest.mark.parametrize("command", ["train sft", "train ppo", "train dpo", "evaluate some/model"])
def test_an_unknown_environment_is_refused_before_the_libraries_are_loaded(command: str) -> None:
    """They take seconds, for a name that a moment can check."""
    script = (
        "import sys; from forethought.cli.main import main; "
        f"code = main('{command} --environment.id NumberLin'.split()); "
        "print(code, [name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.startswith("error: unknown environment 'NumberLin' — did you mean")
    assert done.stdout == "2 []\n"


def test_a_model_that_cannot_answer_is_told_after_one_iteration(type_: Type) -> None:
    """Its run would go to the end, and teach nothing, without a word."""
    for algorithm in ("ppo", "dpo"):
        words = PPO.replace("ppo", algorithm).replace("--epochs 1 ", "")
        outcome = type_(f"{words} --model tiny --output runs/{algorithm}")
        assert outcome.code == 0, outcome.err
        warnings = [line for line in outcome.lines if line.startswith("warning: ")]
        assert len(warnings) == 1
        assert "train it first (`forethought train sft`)" in warnings[0]


def test_steps_that_an_older_checkpoint_does_not_tell_are_counted_in_the_shards(
    ppo_run: Path,
) -> None:
    """Such a run, resumed, would play all of its steps again. This one plays 16 an iteration."""
    for iteration in (2, 3):
        checkpoint = ppo_run / "checkpoints" / f"step_{iteration}"
        told = load_progress(checkpoint)
        file = checkpoint / "progress.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        assert content.pop("environment_steps") == 16 * iteration
        file.write_text(json.dumps(content), encoding="utf-8")
        assert load_progress(checkpoint) == told
