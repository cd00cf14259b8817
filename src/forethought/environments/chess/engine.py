"""Where a chess engine is, and one as a process that is asked over UCI and never waited for
without limit. Needs neither an engine nor the `chess` package."""

import os
import select
import shutil
import subprocess
import time
import weakref
from collections import deque
from contextlib import suppress
from typing import IO, NamedTuple

from forethought.errors import EnvironmentUnusableError, MissingDependencyError

PROGRAM = "stockfish"
PACKAGE = "apt-get install stockfish"
"""On Debian and Ubuntu; what `forethought doctor` says, too."""
VARIABLE = "FORETHOUGHT_STOCKFISH"
"""Names another program in the environment; empty, there is none."""
_ELSEWHERE = ("/usr/games", "/usr/local/bin", "/opt/homebrew/bin")
"""Debian puts games into the first, which many shells do not search."""

GRACE_S = 1.0
"""How long an engine may take to leave, in seconds, before it is killed."""

MOST_BYTES = 1 << 22
"""How much an engine may write in one response. A search writes some kilobytes."""

MATE_SCORE = 10_000.0
"""Centipawns of a mate on the board; one in n moves counts n less. Above any evaluation."""


def find_stockfish(name: str = PROGRAM) -> str | None:
    """The program of this name or path, or None where there is none."""
    if name == PROGRAM:
        name = os.environ.get(VARIABLE, PROGRAM)
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), *_ELSEWHERE))
    return shutil.which(name, path=places) if name else None


def require_stockfish(name: str = PROGRAM) -> str:
    """The program's path.

    Raises:
        MissingDependencyError: it is not there; the message says how to get it.
    """
    path = find_stockfish(name)
    if path is None:
        raise MissingDependencyError(
            f"Chess needs the program {name!r}, not found — run: {PACKAGE} (or play the weaker "
            "built-in opponent: opponent=builtin)"
        )
    return path


class EngineCrashError(EnvironmentUnusableError):
    """The engine ended, or answered with something that is not UCI."""


class NotUciError(EngineCrashError):
    """The program is no engine: it does not answer `uci` as the protocol demands."""


class EngineTimeoutError(EnvironmentUnusableError, TimeoutError):
    """The engine kept silent for longer than it may."""


class Candidate(NamedTuple):
    """A move that the engine considered, and what it expects of it."""

    score: float
    """Centipawns, for the side to move; `MATE_SCORE` less n for mate in n moves."""
    line: tuple[str, ...]
    """The move and what should follow it, in UCI notation."""


class Search(NamedTuple):
    """What one search found."""

    best: str
    """The engine's choice, in UCI notation."""
    candidates: tuple[Candidate, ...]
    """Best first, at least one: as many as were asked for, or as there are legal moves."""


class UciProcess:
    """One running engine. It ends when this object is closed or collected, when the
    interpreter exits, and when this process is killed: its standard input ends then.

    It leads a session of its own, so that Ctrl-C, which is this process's affair, does
    not end it in the middle of a move.
    """

    def __init__(
        self,
        path: str,
        options: tuple[tuple[str, str], ...],
        *,
        start_timeout_s: float,
        timeout_s: float,
    ) -> None:
        """Starts the program and waits until it is ready.

        Args:
            options: names and values for `setoption`.
            start_timeout_s: what starting may take, seconds.
            timeout_s: what a search may take, seconds.

        Raises:
            EngineCrashError: it cannot be started, or ends at once.
            EngineTimeoutError: it is not ready in time.
            NotUciError: it is no engine: it repeats what it is told, or writes without end.
        """
        self._timeout_s = timeout_s
        try:
            self._process = subprocess.Popen(
                [path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineCrashError(f"{path} cannot be started: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout = self._process.stdout.fileno()
        self._finalizer = weakref.finalize(self, _end, self._process)
        self._unread = b""
        """The beginning of a line that has not ended yet."""
        self._lines: deque[bytes] = deque()
        self._ready = select.poll()
        self._ready.register(self._stdout, select.POLLIN)
        self._lines_shown = 1
        try:
            self._say("uci")
            self._hear_until("uciok", start_timeout_s)
            for name, value in options:
                self._say(f"setoption name {name} value {value}")
        except EnvironmentUnusableError:
            self.close()
            raise

    @property
    def process_id(self) -> int:
        """The number of the process."""
        return self._process.pid

    def search(self, position: str, limits: str, lines: int) -> Search:
        """Searches from a clean state, so that the result depends on nothing but the question.

        Args:
            position: as UCI writes it after `position`: "startpos moves e2e4".
            limits: as UCI writes them after `go`: "depth 1 nodes 1000".
            lines: how many candidates to find (`MultiPV`).

        Raises:
            EngineCrashError: the engine ended or answered with nonsense.
            EngineTimeoutError: it did not answer in time.
        """
        if lines != self._lines_shown:
            self._say(f"setoption name MultiPV value {lines}")
            self._lines_shown = lines
        self._say(f"ucinewgame\nposition {position}\ngo {limits}")
        return read_search(self._hear_until("bestmove", self._timeout_s))

    def close(self) -> None:
        """Ends the program; closing twice does nothing."""
        self._finalizer()

    def _say(self, text: str) -> None:
        try:
            self._stdin.write(f"{text}\n".encode("ascii"))
            self._stdin.flush()
        except (OSError, ValueError) as error:  # ValueError: closed
            raise EngineCrashError(f"the engine has ended{self._exit_code()}") from error

    def _hear_until(self, word: str, timeout_s: float) -> list[str]:
        """All lines up to the one that begins with this word."""
        deadline_s = time.monotonic() + timeout_s
        heard: list[str] = []
        n_bytes = 0
        while True:
            while self._lines:
                heard.append(self._lines.popleft().decode("utf-8", "replace").strip())
                if heard[-1].startswith(word):
                    return heard
                if heard[-1] == "uci":  # what it was told; no engine writes it
                    raise NotUciError("it repeats what it is told")
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not self._ready.poll(left_s * 1000):
                raise EngineTimeoutError(f"the engine did not answer within {timeout_s:g} s")
            more = os.read(self._stdout, 1 << 16)
            if not more:
                raise EngineCrashError(f"the engine has ended{self._exit_code()}")
            n_bytes += len(more)
            if n_bytes > MOST_BYTES:
                raise NotUciError(f"it wrote {n_bytes >> 20} MiB without {word!r}")
            *complete, self._unread = (self._unread + more).split(b"\n")
            self._lines.extend(complete)

    def _exit_code(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            return f" (exit code {self._process.wait(0.1)})"
        return ""


def read_search(lines: list[str]) -> Search:
    """Reads `info` lines and the closing `bestmove`.

    The candidates are those of the last complete round: a search that was cut short may
    have begun another.

    Raises:
        EngineCrashError: there is no best move, or nothing is said of any.
    """
    words = lines[-1].split()
    if len(words) < 2 or words[1] in ("(none)", "0000"):
        raise EngineCrashError(f"the engine answered {lines[-1]!r}, expected a move")
    complete: list[Candidate] = []
    current: list[Candidate] = []
    for line in lines:
        found = _read_candidate(line.split())
        if found is None:
            continue
        number, candidate = found
        if number == 1:
            current = []
        current.append(candidate)
        if len(current) >= len(complete):
            complete = current
    if not complete:
        raise EngineCrashError("the engine gave a move without an evaluation")
    return Search(words[1], tuple(complete))


def _read_candidate(words: list[str]) -> tuple[int, Candidate] | None:
    """Its place from 1, and the candidate; None for any other line."""
    if words[:1] != ["info"] or "score" not in words or "pv" not in words:
        return None
    try:
        at = words.index("score")
        value = int(words[at + 2])
        if words[at + 1] == "mate":
            score = MATE_SCORE - value if value > 0 else -MATE_SCORE - value
        else:
            score = float(value)
        number = int(words[words.index("multipv") + 1]) if "multipv" in words else 1
        line = tuple(words[words.index("pv") + 1 :])
        return (number, Candidate(score, line)) if line else None
    except (ValueError, IndexError) as error:
        raise EngineCrashError(f"the engine wrote {' '.join(words)[:80]!r}") from error


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Asks the program to leave, then makes it."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError, ValueError):
        process.stdin.write(b"quit\n")
        process.stdin.flush()
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
