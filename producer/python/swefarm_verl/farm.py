"""The farm's HTTP side, by the standard library alone: every call is idempotent there, so a lost answer is asked for again."""

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
#: Seconds a call may wait for the farm's answer, beyond what the call itself asks the farm to wait.
ANSWER_S = 120.0
#: Seconds during which a farm that fails to answer is asked again, counted from the first failure after it served.
PATIENCE_S = 300.0
#: Seconds between two tries grow to this, or to a part of a shorter patience.
LONGEST_PAUSE_S = 5.0
#: Threads wait, they do not work: one for each call in flight, started when needed.
_threads = ThreadPoolExecutor(max_workers=1024, thread_name_prefix="swefarm")


class FarmError(Exception):
    """The farm cannot be reached or cannot serve now: nothing is known of the rollout, so it has no reward."""


class HoldExpired(FarmError):
    """The farm cancelled the rollout at the deadline of its call. Not asked again: that would begin another rollout."""


class FarmRefusal(Exception):
    """The farm refuses the call itself (4xx). ``code`` is stable, ``field`` names what is wrong."""

    def __init__(self, status: int, code: str, message: str, field: Optional[str]) -> None:
        super().__init__(f"{code}: {message}")
        self.status, self.code, self.field = status, code, field


class Farm:
    """One gateway of a farm. ``settings`` win over SWEFARM_GATEWAY_URL and SWEFARM_GATEWAY_TOKEN."""

    def __init__(self, settings: Optional[Mapping[str, Any]] = None) -> None:
        given = dict(settings or {})
        self.url = str(given.get("farm_url") or os.environ.get("SWEFARM_GATEWAY_URL") or DEFAULT_URL).rstrip("/")
        token_env = str(given.get("token_env") or "SWEFARM_GATEWAY_TOKEN")
        self._token = os.environ.get(token_env, "")
        self.patience_s = float(given.get("patience_s") or PATIENCE_S)

    def call(self, method: str, path: str, body: Any = None, answer_s: float = ANSWER_S) -> Any:
        """
        The answer's JSON. ``answer_s`` is how long the farm may take, over all tries. Raises FarmRefusal, or FarmError
        once patience is over. A try that held its connection longer than we ever pause was served: patience begins anew.
        """
        longest = min(LONGEST_PAUSE_S, self.patience_s / 4)
        deadline = time.monotonic() + answer_s + self.patience_s
        until: Optional[float] = None
        while True:
            asked = time.monotonic()
            try:
                return self.once(method, path, body, max(0.1, min(answer_s, deadline - asked)))
            except (http.client.HTTPException, OSError, ValueError) as error:
                now = time.monotonic()
                # What never got a connection, however long it tried, was not served.
                served = not isinstance(error, urllib.error.URLError) and now - asked > longest
                if served or until is None:
                    until, pause = min(now + self.patience_s, deadline), min(0.2, longest)
                if now + pause >= until:
                    raise FarmError(f"{self.url}{path}: {error}") from error
            time.sleep(pause)
            pause = min(pause * 2, longest)

    def once(self, method: str, path: str, body: Any, answer_s: float) -> Any:
        """Without asking again."""
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
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
        said = json.loads(text)["error"]
        return FarmRefusal(status, str(said["code"]), str(said["message"]), said.get("field"))
    except (ValueError, KeyError, TypeError):
        return FarmRefusal(status, "unknown", text[:200].decode(errors="replace"), None)


async def in_thread(work: Callable[[], T]) -> T:
    """Runs a blocking call without holding up the event loop, however many others wait."""
    return await asyncio.get_running_loop().run_in_executor(_threads, work)
