"""Ctrl-C in the first moments of a command, in real processes: one word and no traceback, even
where the shell that started it has SIGINT ignored."""

import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

LOADED = "import time:"
"""How Python begins a line of `-X importtime`, on stderr, after each module that it loaded."""


@contextmanager
def loading(module: str, ignored: bool) -> Generator["subprocess.Popen[str]"]:
    """A command whose start has come as far as this module; it has much to load still."""

    def as_a_shell_does() -> None:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    start: Callable[[], None] = as_a_shell_does
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "forethought", "doctor"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=start,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rstrip().endswith(f" {module}"):
                break
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("ignored", [False, True], ids=["", "SIGINT ignored"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize(
    "module",
    [
        pytest.param("forethought.cli.commands", id="first of the command's own modules"),
        pytest.param("tyro", id="while settings are read"),
        pytest.param("torch._C", id="while libraries are loaded"),
    ],
)
def test_an_early_interruption_is_one_word(
    module: str, number: signal.Signals, ignored: bool
) -> None:
    with loading(module, ignored) as process:
        process.send_signal(number)
        assert process.stderr is not None
        said = [line for line in process.stderr if not line.startswith(LOADED)]
        assert said == ["interrupted\n"]
        assert process.wait() == 128 + number
