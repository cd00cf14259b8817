"""`forethought serve` in a process of its own, and raw words with it."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

CHAT, MODELS = "/v1/chat/completions", "/v1/models"
WAIT_S = 60.0
"""Longer than any limit of the servers here: who still waits then was never let go."""


@dataclass
class Server:
    """`forethought serve` in a process."""

    process: subprocess.Popen[bytes]
    port: int
    stderr: Path

    def connect(self, timeout_s: float = WAIT_S) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout_s)

    def raw(self, sent: bytes, timeout_s: float = WAIT_S) -> bytes:
        """Sends bytes as they are; what comes back until the server closes or is silent."""
        with self.connect(timeout_s) as line:
            got = b""
            try:
                line.sendall(sent)
                while block := line.recv(1 << 16):
                    got += block
            except OSError:  # Closed before all was sent, or silent.
                pass
            return got

    def post(self, body: bytes, timeout_s: float = WAIT_S) -> int:
        """The status of a request, or 0 where there is no answer."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        with closing(line):
            try:
                line.request("POST", CHAT, body, {"Content-Type": "application/json"})
                response = line.getresponse()
                response.read()
                return response.status
            except (OSError, http.client.HTTPException):
                return 0

    def answers(self) -> bool:
        """Whether a usual request is answered, as soon as there is room for it and its
        connection."""
        until_s = time.monotonic() + WAIT_S
        while (status := self.post(chat("move", max_tokens=1))) in (0, 429):
            if time.monotonic() > until_s:
                return False
            time.sleep(0.05)
        return status == 200

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    def said(self) -> str:
        return self.stderr.read_text(encoding="utf-8", errors="surrogateescape")


@contextmanager
def serving(model: str, *flags: str) -> Generator[Server]:
    """The command, until the block ends."""
    command = "import sys; from forethought.cli.main import main; sys.exit(main())"
    words = [sys.executable, "-c", command, "serve", model, "--name", "m"]
    words += ["--port", "0", "--threads", "1", *flags]
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # As in a job of the background.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with TemporaryDirectory() as folder, (Path(folder) / "stderr").open("wb") as stderr:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr)
        assert process.stdout is not None
        try:
            line = process.stdout.readline().decode()
            found = re.search(r":(\d+)/v1", line)
            assert found is not None, (Path(folder) / "stderr").read_text(encoding="utf-8")
            yield Server(process, int(found[1]), Path(folder) / "stderr")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def chat(text: str, **fields: object) -> bytes:
    """The body of a request."""
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": "m", "messages": messages} | fields).encode()


def is_closed_while_sending(line: socket.socket, sent: bytes) -> bool:
    """Whether the server closes a connection on which the same is sent again and again."""
    until_s = time.monotonic() + WAIT_S
    while time.monotonic() < until_s:
        try:
            line.sendall(sent)
            time.sleep(0.001)
        except TimeoutError:  # The server reads no more meanwhile.
            continue
        except OSError:
            return True
    return False
