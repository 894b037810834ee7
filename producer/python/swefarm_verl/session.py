"""
A session of the farm for one trajectory. verl calls create and release around every single tool call, so the process of
the agent loop stores the sessions of all trajectories. A thread of that process sends their heartbeats.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional

from .farm import Farm, FarmError, FarmRefusal, in_thread

logger = logging.getLogger(__name__)

#: Seconds without a heartbeat after which the farm removes a sandbox.
LEASE_S = 60.0
#: Longest wait of one call in seconds. The call is then repeated.
WAIT_S = 60.0
#: Identifies this process, because request ids may repeat after a restart of the trainer.
_PROCESS = uuid.uuid4().hex[:12]


class SessionOver(Exception):
    """The session was submitted, reached a limit or was lost, and accepts no more commands. The message is for the model."""


@dataclass
class Session:
    """The session of one trajectory runs one command at a time."""

    farm: Farm
    session_id: str
    said: int = 0
    over: Optional[str] = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, command: str, timeout_s: Optional[float] = None) -> Mapping[str, Any]:
        """Runs a command. Returns the farm's answer: observation, exit_code, seconds, note. Raises SessionOver, FarmError, FarmRefusal."""
        async with self.lock:
            if self.over is not None:
                raise SessionOver(self.over)
            body: dict[str, Any] = {"seq": self.said + 1, "command": command, "wait_s": WAIT_S}
            if timeout_s is not None:
                body["timeout_s"] = timeout_s
            while True:
                answer = await in_thread(lambda: self.farm.call("POST", f"{self._path}/commands", body, WAIT_S + 60))
                if answer["state"] != "waiting":
                    break
            if answer["state"] == "answered":
                self.said += 1
                return answer
            self.over = f"The sandbox takes no more commands ({answer.get('end') or 'ended'})."
            hearts.forget(self.session_id)
            raise SessionOver(self.over)

    async def submit(self) -> None:
        """Submits the current tree. Does not wait for the tests."""
        async with self.lock:
            await in_thread(lambda: self.farm.call("POST", f"{self._path}/submit", {"wait_s": 0}))
            self.over = "The solution is submitted; no more commands run."
            hearts.forget(self.session_id)

    @property
    def _path(self) -> str:
        return f"/v1/sessions/{self.session_id}"


class _Hearts:
    """One thread that renews the leases of all sessions of this process."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._every_s = LEASE_S / 4
        self._thread: Optional[threading.Thread] = None
        self._guard = threading.Lock()
        self._sooner = threading.Event()

    def keep(self, session: Session, lease_s: float) -> None:
        with self._guard:
            self._sessions[session.session_id] = session
            if lease_s / 4 < self._every_s:
                self._every_s = lease_s / 4
                self._sooner.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="swefarm-hearts", daemon=True)
                self._thread.start()

    def forget(self, session_id: str) -> None:
        with self._guard:
            self._sessions.pop(session_id, None)

    def beats_for(self, session_id: str) -> bool:
        with self._guard:
            return session_id in self._sessions

    def _beat(self) -> None:
        while True:
            self._sooner.wait(self._every_s)
            self._sooner.clear()
            with self._guard:
                farms: dict[str, list[Session]] = {}
                for session in self._sessions.values():
                    farms.setdefault(session.farm.url, []).append(session)
            for sessions in farms.values():
                ids = [session.session_id for session in sessions]
                try:
                    alive = set(sessions[0].farm.once("POST", "/v1/sessions/heartbeat", {"session_ids": ids}, 10)["alive"])
                except Exception as error:  # The lease lasts four heartbeats, so the next one may succeed in time.
                    logger.warning("swefarm: no heartbeat: %s", error)
                    continue
                for session in sessions:
                    if session.session_id not in alive:
                        self.forget(session.session_id)


hearts = _Hearts()
_opened: dict[str, int] = {}


async def open_session(request_id: str, settings: Mapping[str, Any], create_kwargs: Mapping[str, Any]) -> Session:
    """
    Opens the sandbox of a trajectory. ``create_kwargs`` come from the row's tools_kwargs: ``instance`` (JSON text of the
    whole instance), or ``run_id`` and ``instance_id`` of a run that the farm knows. Raises FarmError, FarmRefusal.
    """
    _opened[request_id] = _opened.get(request_id, 0) + 1
    lease_s = float(settings.get("lease_s") or LEASE_S)
    body = {
        "request_id": f"{_PROCESS}-{request_id}-{_opened[request_id]}",
        "lease_s": lease_s,
        **{key: create_kwargs[key] for key in ("instance", "run_id", "instance_id") if create_kwargs.get(key) is not None},
        **{key: settings[key] for key in ("agent", "sandbox", "evaluation") if settings.get(key)},
    }
    farm = Farm(settings)
    opened = await in_thread(lambda: farm.call("POST", "/v1/sessions", body))
    session = Session(farm, str(opened["session_id"]))
    hearts.keep(session, lease_s)
    return session


@dataclass(frozen=True)
class Verdict:
    """The verdict on a session. ``judged`` False: the sample must not count in its group."""

    judged: bool
    reward: float
    resolved: bool
    why: str
    report: Optional[Mapping[str, Any]] = None
    #: Parts of the reward, by name.
    parts: Mapping[str, float] = field(default_factory=dict)


UNKNOWN = "the farm could not judge it"


def verdict_of(result: Mapping[str, Any]) -> Verdict:
    """Converts the farm's result of a session to a verdict."""
    judged = bool(result.get("judged")) and result.get("reward") is not None
    failure = result.get("failure") or {}
    why = str(failure.get("class") or result.get("reward_row") or UNKNOWN)
    reward = float(result["reward"]) if judged else 0.0
    parts = dict(result.get("reward_components") or {}) if judged else {}
    return Verdict(judged, reward, bool(result.get("resolved")), why, result.get("report"), parts)


def named_parts(parts: Mapping[str, float], names: Iterable[str]) -> dict[str, Any]:
    """
    Returns the parts of a reward as fields for verl. Every sample of a batch must have the same keys, so one JSON text has all
    parts, and only the parts in ``names`` are separate numbers (0 for a missing part).
    """
    text = json.dumps({name: float(parts[name]) for name in sorted(parts)})
    return {"reward_components": text, **{f"score/{name}": float(parts.get(name, 0.0)) for name in names}}


async def grade(farm: Farm, session_id: str, wait_s: float) -> Verdict:
    """Submits the session if necessary and waits for the verdict, at most ``wait_s`` seconds."""
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_s
    path = f"/v1/sessions/{session_id}/submit"
    try:
        while loop.time() < until:
            answer = await in_thread(lambda: farm.call("POST", path, {"wait_s": WAIT_S}, WAIT_S + 60))
            if answer["state"] == "ended":
                return verdict_of(answer["result"])
    except (FarmError, FarmRefusal) as error:
        return Verdict(False, 0.0, False, str(error)[:200])
    finally:
        hearts.forget(session_id)
    return Verdict(False, 0.0, False, f"no verdict within {wait_s:.0f} s")


def plain(value: Any) -> dict[str, Any]:
    """Converts a dict, the JSON text of a dict, or None to a dict without None values."""
    if isinstance(value, str):
        value = json.loads(value or "{}")
    return {key: inner for key, inner in dict(value or {}).items() if inner is not None}
