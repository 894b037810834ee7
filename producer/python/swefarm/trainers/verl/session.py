"""
A session of the farm for one trajectory. verl calls create and release around every single tool call, so the process of
the agent loop stores the sessions of all trajectories. A thread of that process sends their heartbeats.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional

from swefarm.farm import Farm, FarmError, FarmRefusal, in_thread
from swefarm.hearts import Hearts

#: Seconds without a heartbeat after which the farm removes a sandbox.
LEASE_S = 60.0
#: Longest wait of one call in seconds. The client then repeats the call.
WAIT_S = 60.0
#: A command that submits the tree. With ``agent.max_submits`` above 1 the farm judges it, and its observation is the feedback.
SUBMIT_COMMAND = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
SUBMITTED = "Submitted."
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

    async def submit_for_feedback(self) -> str:
        """Submits the tree and waits for the tests. Returns why they failed, or SUBMITTED if they passed or no submit is left."""
        try:
            return str((await self.run(SUBMIT_COMMAND))["observation"])
        except SessionOver as over:
            if "(submitted)" not in str(over):
                raise
            return SUBMITTED

    @property
    def _path(self) -> str:
        return f"/v1/sessions/{self.session_id}"


hearts = Hearts(LEASE_S)
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
    farm = Farm.of(settings)
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
