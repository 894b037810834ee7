"""The sandbox for asyncio: each call runs in a thread, which only waits for the farm."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Optional, Union

from .farm import in_thread
from .output import Output, Verdict
from .sandbox import Sandbox


class AsyncSandbox:
    """The methods of :class:`swefarm.Sandbox` as coroutines; ``async with`` closes it. ``sandbox`` is the sandbox itself."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    @classmethod
    async def open(cls, instance: Union[Mapping[str, Any], str, None] = None, **options: Any) -> "AsyncSandbox":
        return cls(await in_thread(lambda: Sandbox.open(instance, **options)))

    async def run(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout_s: Optional[float] = None,
        max_bytes: int = 1024**2,
    ) -> Output:
        return await in_thread(
            lambda: self.sandbox.run(command, cwd=cwd, env=env, timeout_s=timeout_s, max_bytes=max_bytes)
        )

    async def read(self, path: str) -> bytes:
        return await in_thread(lambda: self.sandbox.read(path))

    async def write(self, path: str, data: Union[bytes, str], mode: int = 0o644) -> None:
        await in_thread(lambda: self.sandbox.write(path, data, mode))

    async def upload(self, source: Union[str, Path], target: str) -> None:
        await in_thread(lambda: self.sandbox.upload(source, target))

    async def download(self, source: str, target: Union[str, Path]) -> None:
        await in_thread(lambda: self.sandbox.download(source, target))

    async def diff(self) -> str:
        return await in_thread(self.sandbox.diff)

    async def pause(self) -> None:
        await in_thread(self.sandbox.pause)

    async def resume(self) -> None:
        await in_thread(self.sandbox.resume)

    async def submit(self, wait_s: float = 7200.0) -> Verdict:
        return await in_thread(lambda: self.sandbox.submit(wait_s))

    async def close(self) -> None:
        await in_thread(self.sandbox.close)

    async def __aenter__(self) -> "AsyncSandbox":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
