"""The entry point: the table of commands, help, and how errors and bugs come out."""

import errno
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forethought.cli import commands
from forethought.cli.commands import Command, all_commands
from tests.skips import needs
from tests.unit.cli.terminal import Type

FORETHOUGHT = [sys.executable, "-m", "forethought"]


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Makes `forethought envs` end with this error."""

    def envs(settings: object) -> None:
        raise error

    module = importlib.import_module("forethought.cli.envs")
    envs.__annotations__["settings"] = module.Envs
    monkeypatch.setattr(module, "envs", envs)


@pytest.mark.parametrize("words", ["", "--help", "-h", "help"])
def test_the_overview_lists_every_command_and_shows_examples(type_: Type, words: str) -> None:
    outcome = type_(words)
    assert outcome.code == 0
    assert not outcome.err
    for command in all_commands():
        assert f"  {command.name} " in outcome.out
        assert command.summary in " ".join(outcome.out.split())
    assert "Examples:\n  forethought quickstart\n" in outcome.out


@pytest.mark.parametrize("words", ["train", "train --help"])
def test_a_group_explains_its_commands(type_: Type, words: str) -> None:
    outcome = type_(words)
    assert outcome.code == 0
    assert "forethought train sft" in outcome.out
    assert "forethought train ppo --model runs/sft" in outcome.out
    assert "forethought evaluate" not in outcome.out


@pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.name)
def test_the_help_of_every_command_teaches(type_: Type, command: Command) -> None:
    outcome = type_(f"{command.name} --help")
    assert outcome.code == 0
    assert not outcome.err
    description, _, options = outcome.out.partition("usage: ")
    assert f"Examples:\n  forethought {command.name}" in description
    assert options.startswith(f"forethought {command.name} ")


def test_every_field_says_what_it_is(type_: Type) -> None:
    out = type_("train ppo --help-all").out
    assert "Discount per environment step." in out
    assert "RL4VLM: 1e-5" in out
    groups = ("environment options", "prompt options", "rollout options", "optimizer options")
    places = [out.index(group) for group in groups]
    assert places == sorted(places)


def test_the_version(type_: Type) -> None:
    assert type_("--version").out.startswith("forethought 0.")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("evalute runs/ppo", "unknown command 'evalute' — did you mean `forethought evaluate`?"),
        (
            "train reinforce",
            "unknown command 'train reinforce' — did you mean `forethought train reinforce++`?",
        ),
        ("rloo", "unknown command 'rloo' — did you mean `forethought train rloo`?"),
        ("train dppo", "unknown command 'train dppo' — did you mean `forethought train ppo`?"),
        ("ppo", "unknown command 'ppo' — did you mean `forethought train ppo`?"),
        ("xyzzy", "unknown command 'xyzzy' — known: quickstart, train sft, train ppo, train dpo, "),
        ("--json envs", "unknown command '--json' — known: quickstart, "),
    ],
)
def test_an_unknown_command_is_one_line(type_: Type, words: str, hint: str) -> None:
    outcome = type_(words)
    assert outcome.code == 2
    assert not outcome.out
    assert outcome.err.startswith(f"error: {hint}")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("evaluate RUN --temperature abc", "--temperature is 'abc' — expected a number"),
        ("train sft --seed x", "--seed is 'x' — expected a whole number"),
        ("train ppo --total-steps 1.5", "--total-steps is '1.5' — expected a whole number"),
        ("collect --output d --episodes x", "--episodes is 'x' — expected a whole number"),
        ("serve RUN --port x", "--port is 'x' — expected a whole number"),
        ("quickstart --seed x", "--seed is 'x' — expected a whole number"),
    ],
    ids=lambda text: text.partition(" --")[0],
)
def test_what_is_no_number_is_one_line(type_: Type, words: str, line: str) -> None:
    """tyro has an error behind it that nothing can be assigned to."""
    assert type_(words) == (2, "", f"error: {line}\n")


@pytest.mark.parametrize("threads", [0, -3])
@pytest.mark.parametrize(
    "words",
    [
        "evaluate no/model --environment.id Bandit",
        "collect --policy no/model --environment.id Bandit --output data",
        "serve no/model",
    ],
    ids=lambda words: words.partition(" ")[0],
)
def test_fewer_threads_than_one_are_refused(type_: Type, words: str, threads: int) -> None:
    outcome = type_(f"{words} --threads {threads}")
    assert outcome == (2, "", f"error: threads is {threads} — expected 1 or more\n")


def test_a_missing_module_fails_with_its_own_command_alone(
    type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Command("broken", "forethought.cli.no_such_module:run", "Not written yet.")
    for module in ("main", "commands"):
        monkeypatch.setattr(f"forethought.cli.{module}.COMMANDS", (*commands.COMMANDS, broken))
    assert "broken" in type_("--help").out
    assert type_("envs").code == 0
    with pytest.raises(ModuleNotFoundError):
        type_("broken")


def test_a_bug_keeps_its_traceback(type_: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        type_("envs")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device", "runs/x/metrics.jsonl"),
            "error: runs/x/metrics.jsonl: No space left on device — make room, or use another disk",
            id="full disk",
        ),
        pytest.param(
            OSError(errno.EROFS, "Read-only file system", "runs"),
            "error: runs: Read-only file system — use another folder",
            id="read-only",
        ),
        pytest.param(
            RuntimeError("[enforce fail at alloc.cpp] DefaultCPUAllocator: can't allocate memory"),
            "error: out of memory — lower --compute.micro-batch-tokens or the number of slots; "
            "`--dry-run` estimates what training needs",
            id="out of memory",
        ),
    ],
)
def test_what_the_machine_refuses_is_one_line(
    type_: Type, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    fail_with(monkeypatch, error)
    outcome = type_("envs")
    assert outcome.code == 2
    assert outcome.err == f"{line}\n"


def test_an_error_of_several_lines_is_told_in_one(
    type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forethought.errors import PolicyError

    fail_with(monkeypatch, PolicyError("no such model\n  in the folder"))
    assert type_("envs").err == "error: no such model in the folder\n"


def test_listing_environments_loads_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from forethought.cli.main import main\n"
        "for words in (['envs'], ['train', '--help'], ['train', 'ppo', '--help']):\n"
        "    assert main(words) == 0\n"
        "heavy = {'torch', 'transformers', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [*FORETHOUGHT, "train", "ppo", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 141
    process.stderr.close()


def test_a_full_disk_under_stdout_is_one_line() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip(needs("/dev/full", "make test (on Linux)"))
    with full.open("w") as stdout:
        result = subprocess.run(
            [*FORETHOUGHT, "--help"], stdout=stdout, stderr=subprocess.PIPE, text=True, env=buffered
        )
    assert result.returncode == 2
    assert result.stderr == ("error: No space left on device — make room, or use another disk\n")
