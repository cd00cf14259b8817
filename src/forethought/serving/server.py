"""The HTTP server: uvicorn in a thread, with `Application` and `Guard`."""

import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import uvicorn

from forethought.errors import PolicyError
from forethought.serving.admission import Admission, Limits
from forethought.serving.application import Application
from forethought.serving.engine import Engine
from forethought.serving.guard import Guard

_BACKLOG = 128
_UNTAKEN_BYTES = 1 << 17
_KEEP_ALIVE_S = 5
"""How long a connection may be silent between two requests."""
_GRACE_S = 3
"""For the last answers to go out when the server ends."""


@contextmanager
def serving(engine: Engine, *, model: str, host: str, port: int, limits: Limits) -> Generator[str]:
    """Serves until the block ends, and then stops the engine.

    Args:
        model: the name under which clients ask for it.
        host: an address of this machine.
        port: 0 takes a free one.

    Yields:
        The base address, `http://…/v1`.

    Raises:
        PolicyError: the port is taken, or the address is not this machine's.
    """
    admission = Admission(engine, model=model, host=host, limits=limits)
    application = Application(admission)
    most = 4 * limits.concurrency + 16
    try:
        with running(
            application, host, port, connections=most, timeout_s=limits.timeout_s, last=engine.stop
        ) as address:
            yield f"{address}/v1"
    finally:
        engine.stop()
        admission.close()


@contextmanager
def running(
    application: object,
    host: str,
    port: int,
    *,
    connections: int = 64,
    timeout_s: float = 30.0,
    last: Callable[[], None] | None = None,
) -> Generator[str]:
    """Runs any ASGI application until the block ends.

    Args:
        host: an address of this machine.
        port: 0 takes a free one.
        connections: at a time.
        timeout_s: for a whole request.
        last: called before the server ends, while clients may wait for an answer.

    Yields:
        The base address, `http://…`.

    Raises:
        PolicyError: the port is taken, or the address is not this machine's.
    """
    with _listening(host, port) as listener:
        server = _server(application, connections, timeout_s)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        shown = f"[{host}]" if ":" in host else host
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://{shown}:{listener.getsockname()[1]}"
        finally:
            if last is not None:
                last()  # First: whoever waits for an answer is told that none will come.
            server.should_exit = True
            thread.join()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # For its connections: else the system keeps megabytes of answers that nobody takes.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNTAKEN_BYTES)
        return listener
    except OSError as error:
        # What Python says repeats the address; what the system says does not.
        text = str(error.strerror or error).partition(" (while attempting")[0]
        raise PolicyError(f"{host}:{port}: cannot listen: {text}") from error


def _server(application: object, connections: int, timeout_s: float) -> uvicorn.Server:
    guard = partial(Guard, most=connections, timeout_s=timeout_s)
    config = uvicorn.Config(
        cast(Any, application),
        interface="asgi3",
        http=cast(Any, guard),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # `Application` says what was asked, and what went wrong.
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    return uvicorn.Server(config)
