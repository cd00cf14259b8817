"""What a command advises to type next is accepted, and plays the same environment in the same
words."""

import shlex
from pathlib import Path

import pytest

from forethought.cli.next_command import environment_flags
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.serving.engine import Engine
from tests.unit.cli.terminal import Outcome, Type

SMALL = "--expert-steps 8 --batch-size 8 --compute.threads 1"
SERVE = "--port 0 --threads 1"


@pytest.mark.parametrize(
    ("environment", "prompt", "flags"),
    [
        pytest.param(EnvironmentConfig("Bandit"), PromptConfig(), "", id="all by default"),
        pytest.param(
            EnvironmentConfig("EZPoints"),
            PromptConfig(),
            "--environment.image-size 64",
            id="images as the model takes them",
        ),
        pytest.param(
            EnvironmentConfig("EZPoints", image_size=48),
            PromptConfig(),
            "--environment.image-size 48",
            id="images as they were asked for",
        ),
        pytest.param(
            EnvironmentConfig("Wordle", options=("replies=known", "spelling=words"), workers=2),
            PromptConfig(format="action_only", invalid_action_feedback=True, return_bins=4),
            "--environment.options replies=known spelling=words --prompt.format action_only "
            "--prompt.invalid-action-feedback --prompt.return-bins 4",
            id="what differs, but for workers",
        ),
        pytest.param(
            EnvironmentConfig("my.environments:Own", options=("name=two words",)),
            PromptConfig(),
            "--environment.options 'name=two words'",
            id="an environment of one's own",
        ),
    ],
)
def test_flags_of_an_environment(
    environment: EnvironmentConfig, prompt: PromptConfig, flags: str
) -> None:
    expected = f"--environment.id {environment.id} {flags}".rstrip()
    assert environment_flags(environment, prompt, image_size=64) == expected


@pytest.mark.parametrize(
    ("typed", "advised"),
    [
        pytest.param("--environment.image-size 48", "--environment.image-size 48", id="asked for"),
        pytest.param("", "--environment.image-size 300", id="as the environment draws them"),
    ],
)
def test_what_was_collected_is_learned_as_advised(
    type_: Type, sft_run: Path, typed: str, advised: str
) -> None:
    environment = "--environment.id EZPoints"
    how = "--environment.options rules=reference --prompt.format action_only"
    outcome = type_(f"collect {environment} {typed} {how} --episodes 2 --output data")
    advice = outcome.out.splitlines()[-1]
    assert advice == f"next: forethought train sft --data data {environment} {advised} {how}"
    words = advice.removeprefix("next: forethought ")
    learned = type_(f"{words} --model {sft_run} {SMALL} --output runs/a")
    assert learned.code == 0, learned.err
    assert "note:" not in learned.err  # The stored prompts are those of this environment.


def test_nobody_is_advised_to_imitate_chance(type_: Type) -> None:
    outcome = type_("collect --policy random --environment.id Bandit --episodes 2 --output data")
    assert outcome.code == 0
    assert "next:" not in outcome.out


def advice_of(outcome: Outcome) -> tuple[str, str]:
    """The address and the command that `serve` advises."""
    (line,) = (line for line in outcome.lines if line.startswith("try: "))
    url, _, words = line.removeprefix("try: OPENAI_BASE_URL=").partition(" forethought ")
    return url, words


def test_a_served_run_is_played_as_advised(
    type_: Type,
    sft_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    how = "--environment.options rules=reference --prompt.invalid-action-feedback"
    train = f"train sft --model {sft_run} --environment.id NumberLine {how} {SMALL}"
    assert type_(f"{train} --output runs/a").code == 0
    played: list[Outcome] = []

    def follow(engine: Engine) -> None:
        out, err = capfd.readouterr()
        url, words = advice_of(Outcome(0, out, err))
        size = "--environment.image-size 64"
        environment = f"--environment.id NumberLine {size} {how} --max-new-tokens 8"
        assert words == f"evaluate api:runs/a {environment}"
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        played.append(type_(f"{words} --episodes 2"))
        engine.stop()

    monkeypatch.setattr(Engine, "wait", follow)
    assert type_(f"serve runs/a {SERVE} --max-new-tokens 8").code == 0
    (outcome,) = played
    assert outcome.code == 0, outcome.err


def test_answers_are_as_long_as_the_run_has_learned(
    type_: Type, ppo_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "wait", Engine.stop)
    _, words = advice_of(type_(f"serve {ppo_run} {SERVE}"))
    model = shlex.quote(f"api:{ppo_run}")
    assert words == f"evaluate {model} --environment.id Bandit --max-new-tokens 12"


def test_where_a_model_is_at_home_is_not_guessed(
    type_: Type, sft_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "wait", Engine.stop)
    model = sft_run / "checkpoints" / "step_4" / "model"
    _, words = advice_of(type_(f"serve {model} {SERVE}"))
    assert words == f"evaluate {shlex.quote(f'api:{model}')} --environment.id NAME"
