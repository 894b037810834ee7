"""
A sandbox of the farm for an agent loop that runs elsewhere: commands, files, the current patch, and the verdict of the farm. Every call
has a number, so that a repeated call runs only once.
"""

from __future__ import annotations

import base64
import io
import logging
import tarfile
import threading
import time
import uuid
from pathlib import Path
from shlex import quote
from typing import Any, Mapping, Optional, Union

from .farm import Farm
from .hearts import Hearts
from .output import FileError, Output, SandboxEnded, SandboxError, SandboxLost, Verdict

logger = logging.getLogger(__name__)

#: Default seconds without a heartbeat after which the farm removes a sandbox.
LEASE_S = 120.0
#: Longest wait of one call in seconds. The client then repeats the call.
WAIT_S = 30.0
#: Most bytes of one request. The client writes larger files in parts.
PART_BYTES = 6 * 1024**2
#: Most bytes of raw output in an answer of the farm.
OUTPUT_BYTES = 4 * 1024**2
#: Limits of a sandbox that is opened without limits. External loops limit their own turns and commands.
LIMITS = {"step_limit": 10_000, "step_timeout": 600}

hearts = Hearts(LEASE_S)


class Sandbox:
    """
    A sandbox of one instance. Open it with :meth:`open`. As a context manager it is closed at the end; a closed sandbox that was not
    submitted has no verdict. Methods may be called from several threads, and run one after the other. They raise :class:`SandboxEnded`
    when the sandbox accepts no more calls, :class:`swefarm.FarmError` when the farm is unreachable, and :class:`swefarm.FarmRefusal` when
    the farm refuses the call. A thread of this process renews the lease until :meth:`submit` or :meth:`close`.
    """

    def __init__(self, farm: Farm, session_id: str, rollout_id: str) -> None:
        self.farm, self.session_id, self.rollout_id = farm, session_id, rollout_id
        self._seq = 0
        self._ended: Optional[SandboxEnded] = None
        self._lock = threading.RLock()
        self._workdir: Optional[str] = None

    @classmethod
    def open(
        cls,
        instance: Union[Mapping[str, Any], str, None] = None,
        *,
        instance_id: Optional[str] = None,
        run_id: Optional[str] = None,
        url: Optional[str] = None,
        token: Optional[str] = None,
        request_id: Optional[str] = None,
        clock: str = "commands",
        lease_s: float = LEASE_S,
        start_s: float = 1800.0,
        agent: Optional[Mapping[str, Any]] = None,
        sandbox: Optional[Mapping[str, Any]] = None,
        evaluation: Optional[Mapping[str, Any]] = None,
        patience_s: Optional[float] = None,
        farm: Optional[Farm] = None,
    ) -> "Sandbox":
        """
        Opens a sandbox and waits until the sandbox runs, at most ``start_s`` seconds. ``instance`` is a dataset row; ``instance_id`` names
        an instance of the gateway's dataset, or of the run ``run_id``. ``agent``, ``sandbox`` and ``evaluation`` are settings of a run,
        such as ``{"time_limit": 1800, "step_timeout": 300}``. With ``clock="commands"`` the time limit counts only the time of commands;
        with ``"wall"`` all time except pauses (:meth:`pause`). Calls with the same ``request_id`` open the same sandbox.
        """
        farm = farm or Farm(url, token, patience_s=patience_s)
        body: dict[str, Any] = {
            "request_id": request_id or uuid.uuid4().hex,
            **{"inputs": "all", "clock": clock, "lease_s": lease_s},
            "agent": {**LIMITS, **(agent or {})},
        }
        given = {"instance": instance, "instance_id": instance_id, "run_id": run_id, "sandbox": sandbox, "evaluation": evaluation}
        body.update({key: value for key, value in given.items() if value is not None})
        opened = farm.call("POST", "/v1/sessions", body)
        self = cls(farm, str(opened["session_id"]), str(opened["rollout_id"]))
        self._seq = int(opened["said"])
        hearts.keep(self, lease_s)
        try:
            self._wait_until_open(start_s)
        except BaseException:
            self.close()
            raise
        return self

    @property
    def workdir(self) -> str:
        """Path of the repository."""
        if self._workdir is None:
            self._workdir = self.run("pwd").text.strip()
        return self._workdir

    def run(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout_s: Optional[float] = None,
        max_bytes: int = 1024**2,
    ) -> Output:
        """Runs a command in a new bash, at most ``timeout_s`` seconds or the run's ``step_timeout``, whichever is shorter."""
        body: dict[str, Any] = {"command": command, "raw_bytes": min(max_bytes, OUTPUT_BYTES)}
        if cwd is not None:
            body["cwd"] = cwd
        if env:
            body["env"] = dict(env)
        if timeout_s is not None:
            body["timeout_s"] = timeout_s
        answer = self._give("commands", body)
        content = answer["content"]
        return Output(
            _bytes_of(content),
            answer["exit_code"],
            answer["seconds"],
            content["bytes"],
            content["head_bytes"],
            answer["note"],
            answer["observation"],
        )

    def read(self, path: str) -> bytes:
        """Returns a regular file of at most 8 MiB. ``path`` is absolute and must not be a link. Raises FileError."""
        return _bytes_of(self._file("files/read", {"path": path})["content"])

    def write(self, path: str, data: Union[bytes, str], mode: int = 0o644) -> None:
        """Writes a file of any size, and creates the missing folders of ``path``. Replaces a link at ``path``. Raises FileError."""
        content = data.encode() if isinstance(data, str) else data
        parts = [content[at : at + PART_BYTES] for at in range(0, len(content), PART_BYTES)] or [b""]
        if len(parts) == 1:
            return self._write_part(path, content, mode)
        names = [f"{path}.part-{uuid.uuid4().hex[:8]}-{number}" for number in range(len(parts))]
        for name, part in zip(names, parts):
            self._write_part(name, part, mode)
        first, rest = quote(names[0]), " ".join(map(quote, names[1:]))
        joined = self.run(f"cat {rest} >> {first} && rm -f {rest} && mv -fT {first} {quote(path)}")
        if joined.exit_code != 0:
            raise FileError("failed", f"{path}: {joined.text.strip()}")

    def upload(self, source: Union[str, Path], target: str) -> None:
        """Copies a file or a folder of this machine into the sandbox."""
        local = Path(source)
        if local.is_file():
            return self.write(target, local.read_bytes(), local.stat().st_mode & 0o777)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(local, arcname=".")
        name = f"/tmp/.upload-{uuid.uuid4().hex[:8]}.tar"
        self.write(name, packed.getvalue())
        done = self.run(f"mkdir -p {quote(target)} && tar --no-same-owner -xf {name} -C {quote(target)}; code=$?; rm -f {name}; exit $code")
        if done.exit_code != 0:
            raise FileError("failed", f"{target}: {done.text.strip()}")

    def download(self, source: str, target: Union[str, Path]) -> None:
        """Copies a file of the sandbox to this machine."""
        content = self.read(source)
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).write_bytes(content)

    def state(self) -> str:
        """Returns ``waiting``, ``open``, ``grading`` or ``ended``."""
        return str(self._call("GET", "", None)["state"])

    def diff(self) -> str:
        """Returns the patch that :meth:`submit` would submit."""
        return _bytes_of(self._file("diff", {})["content"]).decode()

    def pause(self) -> None:
        """Stops the time limit until the next call that works in the sandbox."""
        self._call("POST", "/clock", {"paused": True})

    def resume(self) -> None:
        """Starts the time limit again."""
        self._call("POST", "/clock", {"paused": False})

    def submit(self, wait_s: float = 7200.0) -> Verdict:
        """
        Submits the tree and waits for the verdict, at most ``wait_s`` seconds. A repeated call returns the same verdict. Raises
        SandboxError at the end of this time.
        """
        until = time.monotonic() + wait_s
        while True:
            left = until - time.monotonic()
            answer = self._call("POST", "/submit", {"wait_s": max(0.0, min(WAIT_S, left))}, WAIT_S + 60)
            if answer["state"] == "ended":
                break
            if left <= 0:
                raise SandboxError(f"{self.session_id}: no verdict within {wait_s:.0f} s")
        hearts.forget(self.session_id)
        result = answer["result"]
        self._ended = self._ended or SandboxEnded("submitted", "the sandbox was submitted")
        return Verdict(bool(result["judged"]), result["reward"], result["resolved"], result["exit_status"], result)

    def close(self) -> None:
        """Closes the sandbox. Changes that were not submitted are lost. Never raises."""
        hearts.forget(self.session_id)
        if self._ended is not None:
            return
        self._ended = SandboxEnded("closed", "the sandbox was closed")
        try:
            self.farm.once("DELETE", f"/v1/sessions/{self.session_id}", None, 30)
        except Exception as error:  # The farm ends the sandbox when its lease expires.
            logger.warning("swefarm: %s was not closed: %s", self.session_id, error)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait_until_open(self, start_s: float) -> None:
        until = time.monotonic() + start_s
        pause = 0.05
        while True:
            state = self._call("GET", "", None)
            if state["state"] == "open":
                return
            if state["state"] != "waiting":
                raise self._end_of(state.get("end"), state.get("result"))
            if time.monotonic() > until:
                raise SandboxError(f"{self.session_id}: no worker started the sandbox within {start_s:.0f} s")
            time.sleep(pause)
            pause = min(1.0, pause * 1.5)

    def _write_part(self, path: str, content: bytes, mode: int) -> None:
        data = base64.b64encode(content).decode()
        self._file("files/write", {"path": path, "data": data, "encoding": "base64", "mode": mode})

    def _file(self, route: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._give(route, body)
        error = answer.get("error")
        if error is not None:
            raise FileError(str(error["code"]), str(error["message"]))
        return answer

    def _give(self, route: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        with self._lock:
            if self._ended is not None:
                raise self._ended
            numbered = {**body, "seq": self._seq + 1, "wait_s": WAIT_S}
            while True:
                answer: Mapping[str, Any] = self._call("POST", f"/{route}", numbered, WAIT_S + 60)
                if answer["state"] == "answered":
                    self._seq += 1
                    return answer
                if answer["state"] == "ended":
                    self._ended = self._end_of(answer.get("end"), answer.get("result"))
                    hearts.forget(self.session_id)
                    raise self._ended

    def _call(self, method: str, route: str, body: Any, answer_s: float = 60.0) -> Any:
        return self.farm.call(method, f"/v1/sessions/{self.session_id}{route}", body, answer_s)

    def _end_of(self, end: Optional[str], result: Optional[Mapping[str, Any]]) -> SandboxEnded:
        failure = (result or {}).get("failure") or {}
        why = failure.get("class") or end or "ended"
        kind = SandboxLost if failure or end == "failed" else SandboxEnded
        return kind(end or "ended", f"{self.session_id}: the sandbox accepts no more calls ({why})")


def _bytes_of(content: Mapping[str, Any]) -> bytes:
    data = str(content["data"])
    return base64.b64decode(data) if content["encoding"] == "base64" else data.encode()
