"""
NeMo Gym's sandbox provider ``swefarm``. Installing this package registers it. ``spec.metadata`` names the instance (``instance_id``, and
``run_id`` if the gateway does not serve its dataset), or ``spec.provider_options["instance"]`` is its whole row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Optional, Union

from nemo_gym.sandbox.providers.base import (
    SandboxCreateError,
    SandboxExecResult,
    SandboxHandle,
    SandboxSpec,
    SandboxStatus,
)

from swefarm.farm import FarmError, FarmRefusal, in_thread
from swefarm.output import Output, SandboxEnded, SandboxError, Verdict
from swefarm.sandbox import Sandbox

#: Exit code of a command that did not run to its end.
NO_EXIT_CODE = 125
STATUS = {"waiting": SandboxStatus.STARTING, "open": SandboxStatus.RUNNING}


class SwefarmProvider:
    """``url``: the gateway; ``settings``: further arguments of :meth:`swefarm.Sandbox.open`. ``handle.raw`` is the Sandbox."""

    name = "swefarm"

    def __init__(self, url: Optional[str] = None, settings: Optional[Mapping[str, Any]] = None) -> None:
        self._options = {"url": url, **(settings or {})}

    async def create(self, spec: SandboxSpec) -> SandboxHandle:
        """Ignores the image of ``spec``: the farm takes the image of the instance. Raises SandboxCreateError."""
        options = {**self._options, **spec.provider_options}
        for name in ("instance_id", "run_id"):
            if spec.metadata.get(name):
                options.setdefault(name, spec.metadata[name])
        if spec.ready_timeout_s is not None:
            options["start_s"] = float(spec.ready_timeout_s)
        if spec.ports:
            raise SandboxCreateError("a sandbox of the farm has no ports that are reachable from outside")
        try:
            sandbox = await in_thread(lambda: Sandbox.open(**options))
        except (FarmError, FarmRefusal, SandboxError) as error:
            raise SandboxCreateError(str(error)) from error
        sandbox.env, sandbox.cwd = dict(spec.env), spec.workdir  # type: ignore[attr-defined]
        return SandboxHandle(sandbox.session_id, self.name, sandbox)

    async def exec(
        self,
        handle: SandboxHandle,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[dict[str, str]] = None,
        timeout_s: Union[int, float, None] = None,
        user: Union[str, int, None] = None,
    ) -> SandboxExecResult:
        """Returns stdout and stderr together as stdout. A command that did not run to its end has an ``error_type``."""
        if user not in (None, "root", 0):
            raise ValueError("commands of the farm run as the user of the image")
        sandbox: Any = handle.raw

        def run() -> Output:
            return sandbox.run(command, cwd=cwd or sandbox.cwd, env={**sandbox.env, **(env or {})}, timeout_s=timeout_s)

        try:
            done = await in_thread(run)
        except (FarmError, SandboxEnded) as error:
            return SandboxExecResult(None, str(error), NO_EXIT_CODE, "sandbox")
        if done.exit_code is None:
            kind = "timeout" if done.timed_out else "sandbox"
            return SandboxExecResult(done.text, f"the command was ended: {done.note}", NO_EXIT_CODE, kind)
        return SandboxExecResult(done.text, "", done.exit_code)

    async def upload_file(self, handle: SandboxHandle, source_path: Path, target_path: str) -> None:
        path = await self._absolute(handle, target_path)
        await in_thread(lambda: handle.raw.upload(source_path, path))

    async def download_file(self, handle: SandboxHandle, source_path: str, target_path: Path) -> None:
        path = await self._absolute(handle, source_path)
        await in_thread(lambda: handle.raw.download(path, target_path))

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        state = await in_thread(lambda: handle.raw.state())
        return STATUS.get(state, SandboxStatus.STOPPED)

    async def submit(self, handle: SandboxHandle, wait_s: float = 7200.0) -> Verdict:
        """Submits the tree of the sandbox and returns the farm's verdict."""
        return await in_thread(lambda: handle.raw.submit(wait_s))

    async def close(self, handle: SandboxHandle) -> None:
        await in_thread(handle.raw.close)

    async def aclose(self) -> None:
        return None

    async def _absolute(self, handle: SandboxHandle, path: str) -> str:
        if path.startswith("/"):
            return path
        folder = handle.raw.cwd or await in_thread(lambda: handle.raw.workdir)
        return f"{folder}/{path}"
