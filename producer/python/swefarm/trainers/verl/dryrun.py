"""Dry runs without a farm: runs commands on this host, and checks the form of patches. A dry run gives no reward."""

from __future__ import annotations

import asyncio
import re
import tempfile
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

from .session import SessionOver

TIMEOUT_S = 60.0
SHOWN = 10_000


@dataclass
class DrySession:
    """Runs commands in an empty folder of this host, without isolation. Use it to test a trainer's setup, not to train."""

    session_id: str
    folder: Any = field(default_factory=lambda: tempfile.TemporaryDirectory(prefix="swefarm-dry-"))
    over: Optional[str] = None

    async def run(self, command: str, timeout_s: Optional[float] = None) -> Mapping[str, Any]:
        if self.over is not None:
            raise SessionOver(self.over)
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            command,
            cwd=self.folder.name,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), timeout_s or TIMEOUT_S)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
            return {"observation": "The command took too long.", "exit_code": None}
        text = out.decode(errors="replace")[:SHOWN]
        return {
            "observation": f"<returncode>{process.returncode}</returncode>\n<output>\n{text}</output>",
            "exit_code": process.returncode,
        }

    async def submit(self) -> None:
        self.over = "The solution is submitted; no more commands run."
        self.folder.cleanup()


def open_dry_session(request_id: str) -> DrySession:
    return DrySession(f"dry-{request_id}")


_FENCE = re.compile(r"```(?:diff|patch)\n(.*?)```", re.S)
_TAG = re.compile(r"<patch>\n?(.*?)</patch>", re.S)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def find_patch(text: str) -> Optional[str]:
    """Returns the last patch of an answer: between <patch> tags, else in a fenced block of type diff or patch."""
    found = _TAG.findall(text) or _FENCE.findall(text)
    return found[-1].rstrip("\n") + "\n" if found and found[-1].strip() else None


@dataclass(frozen=True)
class Structure:
    """Facts about the form of a patch, which is parsed but not applied."""

    files: int
    hunks: int
    problem: Optional[str]

    @property
    def sound(self) -> bool:
        return self.problem is None


def check_structure(patch: Optional[str]) -> Structure:
    """Checks that the text is a unified diff whose hunks have the line counts of their headers."""
    if patch is None:
        return Structure(0, 0, "no patch")
    files = hunks = 0
    old = new = 0
    for number, line in enumerate(patch.splitlines(), 1):
        if old > 0 or new > 0:
            if line.startswith("\\"):
                continue
            kind = line[:1]
            if kind not in ("", " ", "+", "-"):
                return Structure(files, hunks, f"line {number}: a hunk ends early")
            old -= kind != "+"
            new -= kind != "-"
            if old < 0 or new < 0:
                return Structure(files, hunks, f"line {number}: a hunk is longer than it says")
        elif line.startswith("+++ "):
            files += 1
        elif hunk := _HUNK.match(line):
            hunks += 1
            old, new = int(hunk[2] or 1), int(hunk[4] or 1)
        elif line.startswith(("+", "-")) and not line.startswith(("--- ", "-- ")):
            return Structure(files, hunks, f"line {number}: a hunk is longer than it says")
    if old > 0 or new > 0:
        return Structure(files, hunks, "the last hunk ends early")
    return Structure(files, hunks, None if files and hunks else "no hunks")
