"""An HTTP client of the farm that needs only the standard library. All calls are idempotent, so failed calls are retried."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Mapping, Optional, TypeVar

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8080"
#: Default timeout of a call, in seconds.
ANSWER_S = 120.0
#: Default time of retries after a first failure, in seconds.
PATIENCE_S = 300.0
#: Longest pause between two tries, in seconds; never longer than a quarter of the time of retries.
LONGEST_PAUSE_S = 5.0
#: Each concurrent call has a thread, which only waits for the answer.
_threads = ThreadPoolExecutor(max_workers=1024, thread_name_prefix="swefarm")


class FarmError(Exception):
    """The farm is unreachable or cannot serve the call, so the rollout has no reward."""


class HoldExpired(FarmError):
    """The farm cancelled the rollout at the deadline of its call. A retry would begin another rollout."""


class FarmRefusal(Exception):
    """The farm refused the call, and a retry would not help. ``code`` is a stable identifier; ``field`` names the invalid field, if any."""

    def __init__(self, status: int, code: str, message: str, field: Optional[str]) -> None:
        super().__init__(f"{code}: {message}")
        self.status, self.code, self.field = status, code, field


class Farm:
    """
    Client of a gateway. ``settings`` may contain ``farm_url`` (default: SWEFARM_GATEWAY_URL), ``token``, or ``token_env`` (name
    of the variable with the token; default: SWEFARM_GATEWAY_TOKEN), and ``patience_s``.
    """

    def __init__(self, settings: Optional[Mapping[str, Any]] = None) -> None:
        given = dict(settings or {})
        self.url = str(given.get("farm_url") or os.environ.get("SWEFARM_GATEWAY_URL") or DEFAULT_URL).rstrip("/")
        token_env = str(given.get("token_env") or "SWEFARM_GATEWAY_TOKEN")
        self.token = str(given.get("token") or os.environ.get(token_env, ""))
        self.patience_s = float(given.get("patience_s") or PATIENCE_S)

    def call(self, method: str, path: str, body: Any = None, answer_s: float = ANSWER_S) -> Any:
        """
        Returns the JSON of the answer. ``answer_s``: time limit in seconds over all tries. Raises FarmRefusal, or FarmError
        after ``patience_s`` of retries. A try whose connection lasted longer than the longest pause restarts this time.
        """
        longest = min(LONGEST_PAUSE_S, self.patience_s / 4)
        deadline = time.monotonic() + answer_s + self.patience_s
        until: Optional[float] = None
        while True:
            began = time.monotonic()
            try:
                return self.once(method, path, body, max(0.1, min(answer_s, deadline - began)))
            except (http.client.HTTPException, OSError, ValueError) as error:
                now = time.monotonic()
                # URLError: no connection was made.
                served = not isinstance(error, urllib.error.URLError) and now - began > longest
                if served or until is None:
                    until, pause = min(now + self.patience_s, deadline), min(0.2, longest)
                if now + pause >= until:
                    raise FarmError(f"{self.url}{path}: {error}") from error
            time.sleep(pause)
            pause = min(pause * 2, longest)

    def once(self, method: str, path: str, body: Any, answer_s: float) -> Any:
        """Makes the call without retries. Raises FarmRefusal, HoldExpired, OSError, HTTPException, ValueError."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=answer_s) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            refusal = _refusal(error.code, text)
            if refusal.code == "hold_expired":
                raise HoldExpired(f"{self.url}{path}: {refusal}") from error
            if error.code in (429, 502, 503, 504):
                raise OSError(f"HTTP {error.code}: {text[:200]!r}") from error
            raise refusal from error


def _refusal(status: int, text: bytes) -> FarmRefusal:
    try:
        error = json.loads(text)["error"]
        return FarmRefusal(status, str(error["code"]), str(error["message"]), error.get("field"))
    except (ValueError, KeyError, TypeError):
        return FarmRefusal(status, "unknown", text[:200].decode(errors="replace"), None)


async def in_thread(work: Callable[[], T]) -> T:
    """Runs a blocking call in a thread."""
    return await asyncio.get_running_loop().run_in_executor(_threads, work)
