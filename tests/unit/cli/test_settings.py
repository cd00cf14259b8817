"""Flags that cannot be read are told in one line that says what to type instead."""

import io
import sys
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
import tyro

from forethought.algorithms.registry import load
from forethought.cli import settings
from forethought.cli.commands import Command, all_commands
from forethought.cli.flags import Flag, Operand, Switch, flags_of, value_of
from forethought.cli.settings import read_settings, settings_type
from forethought.configs.parts import Inline, RolloutConfig
from forethought.errors import ConfigError
from tests.unit.cli.terminal import Type

RATE = "--inner.learning-rate?"


@dataclass(frozen=True)
class Inner:
    learning_rate: float = 0.1
    """How fast."""


@dataclass(frozen=True)
class Ragged:
    size: int = 1
    """One sentence that goes on over
    (two lines); and
    a third."""


@dataclass(frozen=True)
class Outer:
    run: Annotated[str, Operand("RUN")]
    parts: tuple[Literal["left", "right"], ...] = ()
    threads: int | None = None
    dry_run: Switch = False
    inner: Inner = field(default_factory=Inner)
    rollout: Annotated[RolloutConfig, Inline()] = field(default_factory=RolloutConfig)


def complaint(words: str) -> str:
    with pytest.raises(ConfigError) as error:
        read_settings(Outer, words.split(), program="forethought do", description="Do it.")
    return str(error.value)


def test_flags_are_read_as_tyro_reads_them() -> None:
    flags = list(flags_of(Outer))
    assert flags[:5] == [
        Flag("RUN", "text", True),
        Flag("--parts", "left or right, or several", False),
        Flag("--threads", "a whole number", False),
        Flag("--dry-run", "no value", False),
        Flag("--inner.learning-rate", "a number", False),
    ]
    assert Flag("--on-invalid", "random or penalize", False) in flags


@pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.name)
def test_the_flags_of_every_command_are_those_of_its_help(type_: Type, command: Command) -> None:
    """What "did you mean" knows is what tyro takes."""
    made = load(command.target)
    kind = settings_type(made) if command.algorithm is None else made(command.algorithm).kind
    shown = type_(f"{command.name} --help-all").out.partition("usage: ")[2]
    for flag in flags_of(kind):
        assert f" {flag.name} " in shown.replace(",", " ").replace("\n", " ") or (
            f"│ {flag.name}" in shown
        )


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("", "RUN is missing — see forethought do --help"),
        ("r --thread 3", "unknown flag --thread — did you mean --threads?"),
        ("r --dry_rum", "unknown flag --dry_rum — did you mean --dry-run?"),
        ("r --learning-rate 3", "unknown flag --learning-rate — did you mean " + RATE),
        ("r --inner.learningrate 3", "unknown flag --inner.learningrate — did you mean " + RATE),
        ("r --larning-rate=3", "unknown flag --larning-rate — did you mean " + RATE),
        ("r --xyz", "unknown flag --xyz — see forethought do --help"),
        ("r s", "'s' is one word too many — see forethought do --help"),
        ("r --threads two", "--threads is 'two' — expected a whole number"),
        ("r --threads=2.5", "--threads is '2.5' — expected a whole number"),
        ("r --threads", "--threads has no value — expected a whole number"),
        ("r --threads --dry-run", "--threads has no value — expected a whole number"),
        ("r --inner.learning_rate fast", "--inner.learning-rate is 'fast' — expected a number"),
        ("r --parts up", "--parts is 'up' — expected left or right, or several"),
        ("r --on-invalid scold", "--on-invalid is 'scold' — expected random or penalize"),
        ("r --temperature 0", "rollout.temperature is 0.0 — expected above 0"),
    ],
)  # fmt: skip
def test_one_line(words: str, line: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """tyro draws with other letters where a terminal has none for boxes."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    assert complaint(words) == line


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something is said on stderr while flags are read, as a server's thread may."""
    parse = tyro.cli

    def talk(*args: Any, **kwargs: Any) -> Any:
        print("by the way", file=sys.stderr)
        return parse(*args, **kwargs)

    monkeypatch.setattr(tyro, "cli", talk)


@pytest.mark.usefixtures("talkative")
def test_what_else_was_said_meanwhile_is_no_part_of_the_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert complaint("") == "RUN is missing — see forethought do --help"
    assert capsys.readouterr().err == "by the way\n"


@pytest.mark.usefixtures("talkative")
def test_what_is_said_while_flags_are_read_well_is_not_swallowed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert read_settings(Outer, ["r"], program="do", description="") == Outer("r")
    assert capsys.readouterr().err == "by the way\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("r --lr 3", "unknown flag --lr — did you mean --inner.learning-rate?"),
        ("r --wandb", "unknown flag --wandb — every run writes metrics.jsonl and TensorBoard"),
        ("r --report-to=wandb", "unknown flag --report-to — every run writes metrics.jsonl"),
        ("r --bf16", "unknown flag --bf16 — see forethought do --help"),
    ],
)
def test_names_that_the_field_uses_elsewhere(
    words: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one has nothing to point to: these settings have no precision."""
    monkeypatch.setitem(vars(settings)["_ELSEWHERE"], "lr", "--inner.learning-rate")
    assert complaint(words).startswith(line)


def test_help_is_broken_at_the_width_of_the_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where the docstring of a field happens to break its lines."""
    monkeypatch.setenv("COLUMNS", "10000")
    with pytest.raises(SystemExit):
        read_settings(Ragged, ["--help"], program="do", description="")
    out = capsys.readouterr().out
    assert "One sentence that goes on over (two lines); and a third. (default: 1)" in out


def test_a_long_value_is_told_whole() -> None:
    """tyro would break it at the width of its box."""
    value = "/".join(["folder"] * 40)
    assert complaint(f"r --threads {value}") == f"--threads is '{value}' — expected a whole number"


def test_defaults_are_changed_by_what_was_typed_alone() -> None:
    default = Outer("s", threads=3, inner=Inner(0.5))
    changed = read_settings(
        Outer, ["r", "--threads", "4"], program="p", description="", default=default
    )
    assert changed == Outer("r", threads=4, inner=Inner(0.5))


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("--config a.yaml", "a.yaml"),
        ("x --config=a=b.yaml", "a=b.yaml"),
        ("--config a --config b", "b"),
        ("--config", None),
        ("--config --dry-run", None),
        ("--configs a", None),
        ("", None),
    ],
)
def test_a_value_is_found_before_anything_is_read(words: str, value: str | None) -> None:
    assert value_of(words.split(), "--config") == value
