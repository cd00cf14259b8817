"""`--help` shows a command's usual flags, `--help-all` every flag; short names equal long ones."""

import re
from itertools import pairwise

import pytest

from forethought.algorithms.registry import load
from forethought.cli.commands import Command, all_commands
from forethought.cli.flags import MOST_SHOWN, SHORT_NAMES, USUAL, Flag, flags_of
from forethought.cli.settings import settings_type
from forethought.cli.terminal import row, wrapped
from tests.unit.cli.terminal import Type

SHOWN = re.compile(r"^│ (?:-\w [^ ,]+, )?(--[\w.-]*\w|\[[A-Z]+ \.\.\.\]|[A-Z]\S*)", re.MULTILINE)
"""A flag where its row begins."""

TRAIN = "train ppo --dry-run"

every_command = pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.name)


def flags(command: Command) -> dict[str, Flag]:
    made = load(command.target)
    kind = settings_type(made) if command.algorithm is None else made(command.algorithm).kind
    return {flag.name: flag for flag in flags_of(kind)}


def shown(help_: str, known: dict[str, Flag]) -> list[str]:
    return [name for name in SHOWN.findall(help_) if name in known]


@every_command
def test_help_shows_at_most_twelve_flags_and_says_how_many_more(
    type_: Type, command: Command
) -> None:
    known = flags(command)
    outcome = type_(f"{command.name} --help")
    assert (outcome.code, outcome.err) == (0, "")
    usual = shown(outcome.out, known)
    assert len(usual) == len(set(usual)) == min(len(known), MOST_SHOWN)
    assert {name for name, flag in known.items() if flag.is_required} <= set(usual)
    more = f"{len(known) - MOST_SHOWN} more: forethought {command.name} --help-all"
    last = outcome.out.splitlines()[-1]
    assert last == more if len(known) > MOST_SHOWN else "--help-all" not in outcome.out


@every_command
def test_help_all_shows_every_flag(type_: Type, command: Command) -> None:
    known = flags(command)
    outcome = type_(f"{command.name} --help-all")
    assert (outcome.code, outcome.err) == (0, "")
    assert sorted(shown(outcome.out, known)) == sorted(known)


@pytest.mark.parametrize("name", ["train ppo", "train sft", "train q-sft", "train dpo"])
def test_the_usual_flags_of_training(type_: Type, name: str) -> None:
    out = type_(f"{name} --help").out
    for short, flag in (("m", "model"), ("o", "output"), ("e", "environment.id"), ("s", "seed")):
        assert re.search(rf"│ -{short} STR|INT, --{re.escape(flag)} ", out)
    for flag in ("--config", "--resume", "--epochs", "--batch-size", "--optimizer.learning-rate"):
        assert flag in out


def test_every_usual_flag_is_of_some_command() -> None:
    """Red: a flag was renamed, and the table was not."""
    known = {name for command in all_commands() for name in flags(command)}
    assert {*USUAL, *SHORT_NAMES.values()} <= known


def test_what_help_shows_has_its_text_and_its_default(type_: Type) -> None:
    out = " ".join(type_("train ppo --help").out.replace("│", " ").split())
    assert "The run folder. (default: runs/ppo)" in out
    assert "Settings in a file; flags override them." in out


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("-m tiny -s 3", "--model tiny --seed 3"),
        ("-e Bandit -o runs/x", "--environment.id Bandit --output runs/x"),
        ("-s=3 -e=Bandit", "--seed=3 --environment.id=Bandit"),
    ],
)
def test_short_names_equal_long_ones(type_: Type, short: str, long: str) -> None:
    plan = type_(f"{TRAIN} --environment.id NumberLine --model tiny {short}")
    assert plan.out == type_(f"{TRAIN} --environment.id NumberLine --model tiny {long}").out
    assert plan.code == 0
    assert plan.out != type_(f"{TRAIN} --environment.id NumberLine --model tiny").out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("train ppo -s x", "--seed is 'x' — expected a whole number"),
        ("train ppo -s", "--seed has no value — expected a whole number"),
        ("train ppo -c no.yaml", "no.yaml"),
        ("data validate x -s 1", "unknown flag -s"),
    ],
)
def test_errors_name_the_long_flag(type_: Type, words: str, error: str) -> None:
    outcome = type_(words)
    assert outcome.code == 2
    assert error in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("words", ["--help", "train", "train ppo --help", "evaluate --help-all"])
def test_no_line_is_wider_than_the_terminal(
    type_: Type, monkeypatch: pytest.MonkeyPatch, words: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = type_(words).out
    assert [line for line in out.splitlines() if len(line) > width] == []


@every_command
def test_usage_is_no_wider_than_the_terminal(
    type_: Type, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """Nothing of it is lost, and a flag stays with its value."""
    out: dict[int, str] = {}
    for width in (60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        help_ = type_(f"{command.name} --help").out
        out[width] = help_[help_.index("usage: ") :].partition("\n\n")[0]
        assert max(map(len, out[width].splitlines())) <= width
    assert out[200] == " ".join(line.strip() for line in out[60].splitlines())
    assert not any(re.search(r" --[\w-]+$", line) for line in out[60].splitlines())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_paragraphs_fill_their_lines(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """No line ends before the next line's first word would have fitted."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = wrapped("\n".join(["a few words of the source's own line"] * 9)).splitlines()
    for line, after in pairwise(lines):
        assert len(line) + 1 + len(after.split()[0]) > width


def test_a_long_command_is_broken_as_a_shell_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "Examples:\n  forethought train ppo --model runs/sft \\\n    --seed 3 --output runs/ppo"
    assert wrapped(text).splitlines() == [
        "Examples:",
        "  forethought train ppo \\",
        "      --model runs/sft --seed 3 \\",
        "      --output runs/ppo",
    ]
    assert row("  envs  ", "word " * 8).splitlines()[1].startswith("        word")
