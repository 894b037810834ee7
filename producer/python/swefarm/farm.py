"""An HTTP client of the farm that needs only the standard library. All calls are idempotent, so failed calls are retried."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import string
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, TypeVar, Union, cast

if TYPE_CHECKING:
    from .local import LocalFarm
    from .run import Run
    from .sandbox import Sandbox

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8080"
#: Default timeout of a call, in seconds.
ANSWER_S = 120.0
#: Default time in seconds during which a failed call is retried.
PATIENCE_S = 300.0
#: Longest pause between two tries, in seconds. A pause also takes at most a quarter of the time for retries.
LONGEST_PAUSE_S = 5.0
#: Pause in seconds after a 429 answer without Retry-After.
BUSY_S = 10.0
#: Calls to this machine bypass proxies: a proxy would read the token and reach another machine.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))

#: Remedies by HTTP status.
REMEDIES = {
    401: "set SWEFARM_GATEWAY_TOKEN or Farm(token) to a token of the gateway (gateway.token in the state folder of `swefarm serve`)",
    403: "ask the operator to allow the request in the caller's entry of gateway_callers",
    413: "send fewer rows in a request, or ask the operator to raise gateway_body_bytes",
}


class FarmError(Exception):
    """The farm is unreachable or cannot serve the call, so the rollout has no reward."""


class HoldExpired(FarmError):
    """The farm cancelled the rollout at the deadline of its call. A retry would begin another rollout."""


class FarmBusy(FarmError):
    """The farm is reachable, but the caller is over a quota (429). ``retry_after_s``: pause before the next try, in seconds."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class FarmRefusal(Exception):
    """
    The farm refused the call, and a retry would fail too. ``code`` is a stable identifier; ``field`` names the invalid field, if any;
    ``remedy`` names what to change if the farm's message does not.
    """

    def __init__(self, status: int, code: str, message: str, field: Optional[str]) -> None:
        self.remedy = REMEDIES.get(status, "")
        super().__init__(f"{code}: {message}{': ' if self.remedy else ''}{self.remedy}")
        self.status, self.code, self.field = status, code, field


class Farm:
    """
    Client of a gateway at ``url`` (default: SWEFARM_GATEWAY_URL, else this machine) with ``token`` (default: the value of the variable
    ``token_env``). Retries calls that do not reach the farm for ``patience_s`` seconds. Raises ValueError for a token with characters that
    HTTP headers forbid.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        patience_s: Optional[float] = None,
        token_env: Optional[str] = None,
    ) -> None:
        self.url = (url or os.environ.get("SWEFARM_GATEWAY_URL") or DEFAULT_URL).strip().rstrip("/")
        # Files with tokens end with a newline.
        self.token = (token or os.environ.get(token_env or "SWEFARM_GATEWAY_TOKEN", "")).strip()
        if not re.fullmatch("[ -~]*", self.token):
            raise ValueError(f"{'token' if token else token_env or 'SWEFARM_GATEWAY_TOKEN'}: expected printable ASCII characters")
        self.patience_s = float(patience_s or PATIENCE_S)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Farm":
        """Returns a client from the settings of a file: ``farm_url``, ``token``, ``token_env``, ``patience_s``. Each may be absent."""
        return cls(
            settings.get("farm_url"),
            settings.get("token"),
            patience_s=settings.get("patience_s"),
            token_env=settings.get("token_env"),
        )

    @staticmethod
    def local(**options: Any) -> "LocalFarm":
        """Starts a farm on this machine. The farm ends with this process: see :class:`swefarm.local.LocalFarm`."""
        from .local import LocalFarm

        return LocalFarm(**options)

    def run(self, name: str, **options: Any) -> "Run":
        """Returns a run of rollouts with these settings: see :class:`swefarm.Run`."""
        from .run import Run

        return Run(self, name, **options)

    def sandbox(self, instance: "Union[Mapping[str, Any], str, None]" = None, **options: Any) -> "Sandbox":
        """Opens a sandbox of an instance (a dataset row, or an id of the gateway's dataset): see :meth:`swefarm.Sandbox.open`."""
        from .sandbox import Sandbox

        if isinstance(instance, str):
            options, instance = {"instance_id": instance, **options}, None
        return Sandbox.open(instance, farm=self, **options)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        answer_s: float = ANSWER_S,
        headers: Optional[Mapping[str, str]] = None,
        patient: bool = True,
        stop: Optional[threading.Event] = None,
    ) -> Any:
        """
        Returns the JSON of the answer. ``answer_s``: time limit in seconds over all tries. Raises FarmRefusal, or FarmError after
        ``patience_s`` of retries. Raises FarmBusy if a quota refused the last try, or any try with ``patient`` False. A try whose
        connection lasted longer than the longest pause restarts the time for retries. ``stop`` ends the retries with FarmError.
        """
        longest = min(LONGEST_PAUSE_S, self.patience_s / 4)
        deadline = time.monotonic() + answer_s + self.patience_s
        until: Optional[float] = None
        pause = longest
        while True:
            began = time.monotonic()
            try:
                return self.once(method, path, body, max(0.1, min(answer_s, deadline - began)), headers)
            except FarmBusy as busy:
                now = time.monotonic()
                until = until or min(now + self.patience_s, deadline)
                if not patient or now >= until:
                    raise
                pause = min(busy.retry_after_s, until - now)
            except (http.client.HTTPException, OSError, json.JSONDecodeError, UnicodeDecodeError) as error:
                now = time.monotonic()
                # A URLError means that the client made no connection.
                served = not isinstance(error, urllib.error.URLError) and now - began > longest
                if served or until is None:
                    until, pause = min(now + self.patience_s, deadline), min(0.2, longest)
                if now + pause >= until:
                    remedy = "is `swefarm serve` running there? Set SWEFARM_GATEWAY_URL or Farm(url), or wait longer by patience_s"
                    raise FarmError(f"{self.url}{path}: {error}: {remedy}") from error
            if (stop or threading.Event()).wait(pause):
                raise FarmError(f"{self.url}{path}: the call was cancelled")
            pause = min(pause * 2, longest)

    def once(self, method: str, path: str, body: Any, answer_s: float, more: Optional[Mapping[str, str]] = None) -> Any:
        """Makes the call without retries. Raises FarmRefusal, FarmBusy, HoldExpired, OSError, HTTPException, ValueError."""
        headers = {"authorization": f"Bearer {self.token}", **(more or {})} if self.token else dict(more or {})
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            send = _DIRECT.open if _is_this_machine(self.url) else urllib.request.urlopen
            with send(request, timeout=answer_s) as reply:
                return json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            refusal = _refusal(error.code, text)
            if refusal.code == "hold_expired":
                raise HoldExpired(f"{self.url}{path}: {refusal}") from error
            if error.code == 429:
                raise FarmBusy(f"{self.url}{path}: {refusal}", _seconds(error.headers.get("retry-after"))) from error
            if error.code in (502, 503, 504):
                raise OSError(f"HTTP {error.code}: {text[:200]!r}") from error
            raise refusal from error


def header_of(text: str) -> str:
    """Returns a text as the value of a header. Characters other than visible ASCII are percent-encoded."""
    return urllib.parse.quote(text, safe=string.punctuation.replace("%", ""))


def _is_this_machine(url: str) -> bool:
    host = urllib.parse.urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _seconds(retry_after: Optional[str]) -> float:
    return float(retry_after) if retry_after and retry_after.isdecimal() else BUSY_S


def _refusal(status: int, text: bytes) -> FarmRefusal:
    try:
        error = json.loads(text)["error"]
        return FarmRefusal(status, str(error["code"]), str(error["message"]), error.get("field"))
    except (ValueError, KeyError, TypeError):
        return FarmRefusal(status, "unknown", text[:200].decode(errors="replace"), None)


async def in_thread(work: Callable[[], T]) -> T:
    """
    Runs a blocking call in a new thread. The process can end while the thread runs, and a cancelled coroutine does not wait for the
    thread.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def finish(result: Optional[T], error: Optional[BaseException]) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast(T, result))

    def run() -> None:
        result: Optional[T] = None
        failure: Optional[BaseException] = None
        try:
            result = work()
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(finish, result, failure)

    threading.Thread(target=run, name="swefarm-call", daemon=True).start()
    return await done
