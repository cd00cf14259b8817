"""Attacks on `forethought serve`, over raw sockets, against a process of its own.

    python -m tests.durability.serving_attacks MODEL

prints the table of docs/reliability.md: what was tried, how often, and how often it did harm.
MODEL is the folder of any model. The tests call the same functions with fewer tries.
"""

import json
import os
import random
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.durability.serving_process import (
    CHAT,
    MODELS,
    WAIT_S,
    Server,
    chat,
    is_closed_while_sending,
    serving,
)

KEPT_MIB = 200.0
"""Memory that one refused request may leave in use."""
HEAD = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()


class Found(NamedTuple):
    """What came of one attack."""

    attack: str
    tries: int
    failures: int
    note: str = ""

    @property
    def row(self) -> str:
        return f"| {self.attack} | {self.tries} | {self.failures} | {self.note} |"


def stop_while_generating(model: str, tries: int) -> Found:
    """Ctrl-C while answers are being written: 130, as shells count it, is the only good end."""
    codes: list[int] = []
    for _ in range(tries):
        with serving(model, "--max-new-tokens", "1024") as server:
            clients = [threading.Thread(target=_ask_until_refused, args=(server,)) for _ in "1234"]
            for client in clients:
                client.start()
            assert server.answers()
            time.sleep(random.uniform(0.05, 0.5))
            server.process.send_signal(signal.SIGINT)
            codes.append(server.process.wait(WAIT_S))
            for client in clients:
                client.join()
    bad = [code for code in codes if code != 130]
    return Found(
        "Ctrl-C while generating",
        tries,
        len(bad),
        f"exit code {', '.join(map(str, sorted(set(codes))))}",
    )


def _ask_until_refused(server: Server) -> None:
    while server.post(chat("move the number", temperature=1, max_tokens=1000)) == 200:
        pass


def slow_head(model: str, tries: int) -> Found:
    """Headers byte by byte, at concurrency 1, past the time for a request."""
    return _slow(model, tries, "a head sent byte by byte", HEAD + b"X-A: ")


def slow_body(model: str, tries: int) -> Found:
    """A body byte by byte, likewise."""
    return _slow(model, tries, "a body sent byte by byte", HEAD + b"Content-Length: 4000\r\n\r\n")


def _slow(model: str, tries: int, attack: str, begun: bytes) -> Found:
    """The connection must be closed though bytes keep coming."""
    with serving(model, "--timeout-s", "1", "--concurrency", "1") as server:
        closed = [threading.Event() for _ in range(tries)]
        threads = [
            threading.Thread(target=_trickle, args=(server, begun, event)) for event in closed
        ]
        for thread in threads:
            thread.start()
        meanwhile = server.answers()
        for thread in threads:
            thread.join()
        held = sum(not event.is_set() for event in closed)
        note = "" if meanwhile and server.answers() else "others were not answered"
        return Found(attack, tries, held, note)


def _trickle(server: Server, begun: bytes, closed: threading.Event) -> None:
    """Sends five times as long as a request may take."""
    try:
        with server.connect() as line:
            line.sendall(begun)
            for _ in range(100):
                time.sleep(0.05)
                line.sendall(b"a")
    except OSError:
        closed.set()


def long_prompt(model: str, tries: int, mib: float = 7.0) -> Found:
    """A prompt that no model reads: how long another waits meanwhile, and what memory stays."""
    unit = "move the number "
    body = chat(unit * int(mib * 2**20 / len(unit)))
    return _heavy(model, tries, f"a prompt of {mib:g} MiB", lambda: body)


def many_messages(model: str, tries: int) -> Found:
    """100,000 messages without a word."""
    messages = [{"role": "user", "content": ""}] * 100_000
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return _heavy(model, tries, "100,000 messages without words", lambda: body)


def different_prompts(model: str, tries: int) -> Found:
    """Long prompts that are refused, no two of them alike: none may be remembered for ever."""
    with serving(model) as server:
        assert server.answers()
        before_mib = server.memory_mib()
        words = "move the number to the target " * 500
        statuses = [server.post(chat(f"{number} {words}")) for number in range(tries)]
        kept_mib = server.memory_mib() - before_mib
        answered = sum(not 400 <= status < 500 for status in statuses)
        failures = tries if kept_mib > KEPT_MIB or not server.answers() else answered
        return Found("long prompts, all different", tries, failures, f"{kept_mib:.0f} MiB stay")


def heavy_json(model: str, tries: int) -> Found:
    """8 MB of JSON that unfolds to many small objects, to deep ones, or to one long number."""
    bodies = (
        b'{"model": "m", "messages": [' + b"{}," * 2_700_000 + b"{}]}",
        b'{"model": "m", "messages": ' + b"[" * 4_000_000 + b"]" * 4_000_000 + b"}",
        b'{"model": "m", "max_tokens": ' + b"9" * 8_000_000 + b"}",
    )
    draw = random.Random(0)
    return _heavy(model, tries, "8 MB of hostile JSON", lambda: draw.choice(bodies))


def _heavy(model: str, tries: int, attack: str, body: Callable[[], bytes]) -> Found:
    """A failure: it was not refused, another was not answered, or memory stays in use."""
    with serving(model) as server:
        assert server.answers()
        before_mib, failures = server.memory_mib(), 0
        waits: list[float] = []
        statuses: list[int] = []
        for _ in range(tries):
            thread = threading.Thread(
                target=lambda: statuses.append(server.post(body(), timeout_s=600))
            )
            thread.start()
            time.sleep(0.3)
            start_s = time.monotonic()
            is_answered = server.answers()
            waits.append(time.monotonic() - start_s)
            thread.join()
            failures += not (is_answered and 400 <= statuses[-1] < 500)
        kept_mib = server.memory_mib() - before_mib
        note = (
            f"status {'/'.join(map(str, sorted(set(statuses))))}; another waits up to "
            f"{max(waits):.1f} s; {kept_mib:.0f} MiB stay"
        )
        return Found(attack, tries, tries if kept_mib > KEPT_MIB else failures, note)


LENGTHS = (
    "Content-Length: " + "9" * 5000,
    "Content-Length: 99999999999999999999",
    "Content-Length: -1",
    "Content-Length: +{n}",
    "Content-Length: 0x2",
    "Content-Length: {n}, {n}",
    "Content-Length: {n} {n}",
    "Content-Length:",
    "Content-Length: {n}\r\nContent-Length: {n}",
    "Content-Length: {n}\r\nContent-Length: 4000",
    "Content-Length: 4000\r\nContent-Length: {n}",
    "Content-Length: {n}\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
)
"""Announcements of a body of n bytes that mean nothing, two things, or too much."""


def bad_lengths(model: str, tries: int) -> Found:
    """Every one of `LENGTHS`, so many times: refused with a status of 4xx and no traceback."""
    body = chat("move", max_tokens=1)
    lines = [line.format(n=len(body)) for line in LENGTHS] * tries
    with serving(model, "--timeout-s", "2") as server:
        sent = [HEAD + line.encode() + b"\r\n\r\n" + body for line in lines]
        answers = [server.raw(request, timeout_s=10) for request in sent]
        tracebacks = server.said().count("Traceback")
        # All of what comes back: a second answer is a body that was read as a request.
        refused = [re.fullmatch(rb"HTTP/1\.1 4(?s:(?!HTTP/1).)*", answer) for answer in answers]
        note = f"{tracebacks} tracebacks" if tracebacks else ""
        failures = max(refused.count(None), tracebacks)
        return Found("a length that is none", len(sent), failures, note)


def body_of_get(model: str, tries: int) -> Found:
    """A GET whose body is a request: it must never be read as one."""
    hidden = f"GET {MODELS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    head = f"GET {MODELS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(hidden)}\r\n\r\n"
    with serving(model, "--timeout-s", "2") as server:
        answers = [server.raw(head.encode() + hidden, timeout_s=10) for _ in range(tries)]
        read_twice = sum(answer.count(b"HTTP/1.1 ") != 1 for answer in answers)
        return Found("a request in the body of a GET", tries, read_twice)


def huge_head(model: str, tries: int) -> Found:
    """16 MiB of headers: refused, or the connection closed, before they are held in memory."""
    with serving(model, "--timeout-s", "5") as server:
        assert server.answers()
        before_mib, held = server.memory_mib(), 0
        for _ in range(tries):
            with server.connect() as line:
                try:
                    for _ in range(256):
                        line.sendall(b"X-A: " + b"a" * 65000)
                    held += 1
                except OSError:
                    pass
        kept_mib = server.memory_mib() - before_mib
        failures = held if server.answers() else tries
        return Found("16 MiB of headers", tries, failures, f"{kept_mib:.0f} MiB stay")


def leave_at_once(model: str, tries: int) -> Found:
    """Clients that ask for an answer as events and go: the server answers the next one."""
    body = chat("move the number", stream=True, max_tokens=200, temperature=1)
    head = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode()
    with serving(model, "--concurrency", "2") as server:
        failures = 0
        for number in range(tries):
            with server.connect() as line:
                line.sendall(head + body)
                if number % 2:
                    line.recv(1)
            failures += not server.answers()
        tracebacks = server.said().count("Traceback")
        note = f"{tracebacks} tracebacks" if tracebacks else ""
        return Found("gone while the answer is made", tries, max(failures, tracebacks), note)


def flood(model: str, tries: int) -> Found:
    """Requests by the thousand on one connection, and no answer taken: it must be closed."""
    requests = f"GET {MODELS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 1000
    return _unread(model, tries, "requests by the thousand", requests)


def never_read(model: str, tries: int) -> Found:
    """One request after the other, and no answer taken, likewise."""
    request = f"GET {MODELS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    return _unread(model, tries, "answers that are never taken", request)


def _unread(model: str, tries: int, attack: str, sent: bytes) -> Found:
    with serving(model, "--timeout-s", "2", "--concurrency", "2") as server:
        assert server.answers()
        before_mib, most_mib, held = server.memory_mib(), 0.0, 0
        for _ in range(tries):
            with socket.socket() as line:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                line.connect(("127.0.0.1", server.port))
                line.settimeout(0.1)
                held += not is_closed_while_sending(line, sent)
            most_mib = max(most_mib, server.memory_mib() - before_mib)
        failures = held if server.answers() and most_mib < KEPT_MIB else tries
        return Found(attack, tries, failures, f"{most_mib:.0f} MiB in use at most")


def terminal_escapes(model: str, tries: int) -> Found:
    """Control characters in whatever the server may say of a request."""
    hostile = "\x1b]0;owned\x07\x9b31m"
    with serving(model, "--timeout-s", "2") as server:
        for _ in range(tries):
            server.post(json.dumps({"model": hostile, "messages": []}).encode())
            server.post(chat("a", model=hostile))
            server.raw(b"GET /\x1b[31m HTTP/1.1\r\nHost: \x1b[31m\r\n\r\n", timeout_s=5)
            server.raw(b"GET /%1b%5b31m HTTP/1.1\r\nHost: localhost\r\n\r\n", timeout_s=5)
        said = server.said()
        raw = sum(character in said for character in "\x1b\x07\x9b")
        return Found("terminal escapes for the server's log", 4 * tries, raw)


def noise(model: str, tries: int) -> Found:
    """Requests with bytes changed at random: no traceback, and the next one is answered."""
    draw = random.Random(0)
    body = chat("move", max_tokens=1, temperature=0.5, seed=3, stop=None)
    good = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with serving(model, "--timeout-s", "1") as server:
        for _ in range(tries):
            request = bytearray(good)
            for _ in range(draw.randint(1, 8)):
                request[draw.randrange(len(request))] = draw.randrange(256)
            if draw.random() < 0.3:
                del request[draw.randrange(len(request)) :]
            server.raw(bytes(request), timeout_s=0.02)
        tracebacks = server.said().count("Traceback")
        failures = tracebacks if server.answers() else tries
        return Found("bytes changed at random", tries, failures)


ATTACKS: tuple[tuple[Callable[[str, int], Found], int], ...] = (
    (stop_while_generating, 7),
    (slow_head, 20),
    (slow_body, 20),
    (long_prompt, 3),
    (many_messages, 3),
    (different_prompts, 2000),
    (heavy_json, 6),
    (bad_lengths, 3),
    (body_of_get, 20),
    (huge_head, 3),
    (leave_at_once, 20),
    (flood, 3),
    (never_read, 3),
    (terminal_escapes, 5),
    (noise, 500),
)
"""With as many tries as docs/reliability.md tells of."""


def main() -> None:
    model, *names = sys.argv[1:]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    print("| attack | tries | failures | |\n|---|---|---|---|")
    for attack, tries in ATTACKS:
        if not names or attack.__name__ in names:
            print(attack(model, tries).row, flush=True)


if __name__ == "__main__":
    main()
