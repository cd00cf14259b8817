"""Every flag of every `forethought` command in the documentation exists."""

import re
from pathlib import Path

import pytest

from forethought.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "configs").rglob("*.yaml"), *ROOT.glob("*.md")]

COMMAND = re.compile(r"\bforethought((?: [a-z][a-z-]*(?=[\s`]|$))+)([^\n`#]*)")
FLAG = re.compile(r"(?:(?<=\s)|(?<=\[))--[a-z][\w.-]*")
WITH_SUBCOMMANDS = ("train", "data", "bench")

MISSPELLED = "--modle"
"""An example of what an error says."""

Command = tuple[str, ...]


def flags_of(text: str) -> set[tuple[Command, str]]:
    """Each command, without its arguments, and each of its flags."""
    joined = re.sub(r"\\\n#?\s*", " ", text)
    found: set[tuple[Command, str]] = set()
    for command in COMMAND.finditer(joined):
        words = command[1].split()
        name = tuple(words[: 2 if words[0] in WITH_SUBCOMMANDS else 1])
        found |= {(name, flag) for flag in FLAG.findall(re.split(r"&&|;|\|", command[2])[0])}
    return found


OUTSIDE = {("train", "table"), ("train", "cnn")}
"""Commands of examples, which are installed by themselves."""


def test_flags_are_found() -> None:
    text = "`forethought evaluate runs/a --beta 1` --no\n"
    text += "#   forethought train ppo \\\n#       [--seed 1] && x --y"
    assert flags_of(text) == {(("evaluate",), "--beta"), (("train", "ppo"), "--seed")}


def test_every_flag_exists(capsys: pytest.CaptureFixture[str]) -> None:
    """Red: a flag was renamed, and a page was not."""
    named = {
        (command, flag): page.relative_to(ROOT).as_posix()
        for page in PAGES
        for command, flag in flags_of(page.read_text(encoding="utf-8"))
        if flag != MISSPELLED and command not in OUTSIDE
    }
    assert len(named) > 150
    helps: dict[Command, str] = {}
    for command in {command for command, _ in named}:
        for every in ("--help", "--help-all"):
            main([*command, every])
        helps[command] = "".join(capsys.readouterr())
    missing = [
        f"{page}: forethought {' '.join(command)} {flag}"
        for (command, flag), page in sorted(named.items())
        if not re.search(rf"{re.escape(flag)}\b", helps[command])
    ]
    assert missing == []
