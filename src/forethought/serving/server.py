"""The HTTP server: `POST /v1/chat/completions` and `GET /v1/models`, with limits on everything."""

import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from typing import Any

from forethought.errors import PolicyError
from forethought.serving.admission import Admission, Limits
from forethought.serving.connection import Connection
from forethought.serving.engine import Engine


@contextmanager
def serving(engine: Engine, *, model: str, host: str, port: int, limits: Limits) -> Generator[str]:
    """Serves until the block ends.

    Args:
        model: the name under which clients ask for it.
        host: an address of this machine.
        port: 0 takes a free one.

    Yields:
        The base address, `http://…/v1`.

    Raises:
        PolicyError: the port is taken, or the address is not this machine's; the engine is
            stopped.
    """
    admission = Admission(engine, model=model, host=host, limits=limits)
    most = 4 * limits.concurrency + 16
    try:
        server = _HttpServer((host, port), partial(Connection, admission), most=most)
    except OSError as error:
        engine.stop()
        raise PolicyError(f"{host}:{port}: cannot listen: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _HttpServer(ThreadingHTTPServer):
    """The standard library's, which is made to be derived from, with a limit of connections."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: Any, *, most: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._connections = threading.BoundedSemaphore(most)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # A bug. OSError: the client has gone.
