"""Attacks on commands: programs that are no chess engine, hostile settings, Ctrl-C at the start.

    python -m tests.durability.command_attacks [NAME …]

prints the rows of docs/reliability.md, as `run_attacks` does. Each command must end by itself, with
one line on stderr and the exit code that belongs to it.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.durability.commands import TIMEOUT_S, run
from tests.durability.run_attacks import Found

NO_ENGINES = {
    "cat": "exec cat",
    "yes": "exec yes",
    "zero bytes": "exec cat /dev/zero",
    "nothing": "exit 0",
}
"""What programs do that are named as the engine, in shell; besides `/bin/cat` and `/bin/yes`."""


def no_engines(tries: int) -> Found:
    """Chess with a program that is no engine."""
    failures, slowest_s = 0, 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = ["/bin/cat", "/bin/yes"]
        for number, script in enumerate(NO_ENGINES.values()):
            path = folder / f"engine_{number}"
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
            programs.append(str(path))
        for number, program in enumerate(programs * tries):
            began_s = time.monotonic()
            outcome = run(
                f"collect --policy random --environment.id Chess --episodes 1 "
                f"--environment.options stockfish={program} --output {folder / f'data_{number}'}"
            )
            slowest_s = max(slowest_s, time.monotonic() - began_s)
            failures += outcome.code != 2 or len(outcome.lines) != 1
    n = tries * len(programs)
    return Found("a program that is no engine", n, failures, f"{slowest_s:.1f} s at most")


def hostile_settings(tries: int) -> Found:
    """YAML that nests too deep or holds numbers that no setting takes."""
    draw, failures = random.Random(4), 0
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "settings.yaml")
        for text in _hostile_yaml(tries, draw):
            path.write_text(text, encoding="utf-8")
            outcome = run(f"train sft --config {path} --output {Path(name, 'run')}")
            failures += outcome.code != 2 or len(outcome.lines) != 1 or len(outcome.err) > 500
    return Found("nested lists and mappings, numbers of any size, in settings", tries, failures)


def _hostile_yaml(tries: int, draw: random.Random) -> Iterator[str]:
    fields = ("seed", "epochs", "batch_size", "optimizer: {learning_rate", "expert_steps")
    for number in range(tries):
        field = draw.choice(fields)
        end = "}" if "{" in field else ""
        deep, digits = draw.randint(500, 5000), draw.randint(4400, 20_000)
        values = (
            "[" * deep + "]" * deep,
            "{a: " * deep + "1" + "}" * deep,
            "9" * digits,
            "0x" + "f" * digits,
            draw.choice([".inf", "-.inf", ".nan", "1e999", "-1e999"]),
        )
        yield f"{field}: {values[number % len(values)]}{end}\n"


def early_interrupts(tries: int) -> Found:
    """Ctrl-C while a command starts, after any of the modules that it loads until torch begins.
    A moment is a place in the start, not a time: a busy machine starts later."""
    draw = random.Random(5)
    loaded = _modules_loaded()
    first = next(n for n, module in enumerate(loaded) if module.startswith("forethought"))
    failures = before = early = 0
    for _ in range(tries):
        moment = draw.randrange(len(loaded))
        said, code = _interrupted_after(moment)
        is_ours = moment >= first
        early += not is_ours
        is_harm = code != 130 or said != ["interrupted\n"]
        failures += is_harm and is_ours
        before += is_harm and not is_ours
    note = f"{before} of {early} before the command's first line end in Python's own traceback"
    return Found("Ctrl-C while a command starts", tries - early, failures, note)


_LOADED = "import time:"
_START = (sys.executable, "-X", "importtime", "-m", "forethought", "doctor")


def _modules_loaded() -> list[str]:
    """The modules of the start, in order, up to the first of torch's."""
    shown = subprocess.run(_START, check=False, capture_output=True, text=True).stderr
    lines = (line for line in shown.splitlines() if line.startswith(_LOADED))
    names = [line.rpartition("|")[2].strip() for line in lines][1:]
    end = next((n for n, module in enumerate(names) if module.startswith("torch.")), len(names))
    return names[:end]


def _interrupted_after(moment: int) -> tuple[list[str], int]:
    """What a command says beside the modules that it loads, and its exit code."""
    with subprocess.Popen(
        _START,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_as_in_a_terminal,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        said = list[str]()
        for number, line in enumerate(process.stderr, start=-1):  # the first is a headline
            if number == moment:
                os.kill(process.pid, signal.SIGINT)
            if not line.startswith(_LOADED):
                said.append(line)
        return said, process.wait(TIMEOUT_S)


def _as_in_a_terminal() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


ATTACKS: dict[str, tuple[Callable[[int], Found], int]] = {
    "engines": (no_engines, 5),
    "settings": (hostile_settings, 100),
    "interrupts": (early_interrupts, 100),
}
"""With as many tries as docs/reliability.md tells of."""


def main() -> None:
    """Prints the rows of the attacks that are named, or of all."""
    print("| attack | tries | did harm | |\n|---|---|---|---|", flush=True)
    for name in sys.argv[1:] or ATTACKS:
        attack, tries = ATTACKS[name]
        print(attack(tries).row, flush=True)


if __name__ == "__main__":
    main()
