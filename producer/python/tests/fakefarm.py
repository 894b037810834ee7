"""A gateway in this process that plays a script over HTTP."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

Answer = "tuple[int, Any]"


class Server(ThreadingHTTPServer):
    #: A whole batch connects at once. The kernel delays connections beyond the queue by a second.
    request_queue_size = 128


class FakeFarm:
    """
    ``script(method, path, body)`` returns (status, JSON); None drops the connection. ``asked`` records the requests, ``keys`` their
    idempotency keys. ``headers`` are those of every answer.
    """

    def __init__(self, script: Callable[[str, str, Any], Any], headers: "dict[str, str]" = {}) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.keys: list[Any] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                fake.asked.append((self.command, self.path, body))
                fake.keys.append(self.headers.get("idempotency-key"))
                said = script(self.command, self.path, body)
                if said is None:
                    self.close_connection = True
                    return
                status, reply = said
                data = json.dumps(reply).encode()
                with contextlib.suppress(ConnectionError):  # The caller has disconnected.
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *args: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.asked if path != "/v1/sessions/heartbeat"]

    def __enter__(self) -> "FakeFarm":
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
