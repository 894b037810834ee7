"""Answers and errors of a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional


class SandboxError(Exception):
    """A call to a sandbox failed."""


class SandboxEnded(SandboxError):
    """The sandbox accepts no more calls. ``end`` names the cause, such as ``time_limit``, ``lease`` or ``submitted``."""

    def __init__(self, end: str, message: str) -> None:
        super().__init__(message)
        self.end = end


class SandboxLost(SandboxEnded):
    """The worker or the node of the sandbox failed. The sample has no reward; start again in another sandbox."""


class FileError(SandboxError, OSError):
    """A file was not read or written. ``code``: ``not_a_file``, ``too_large`` or ``failed``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Output:
    """The merged stdout and stderr of a command, and how the command ended."""

    data: bytes
    #: None: the time limit ended the command, or the shell was lost.
    exit_code: Optional[int]
    seconds: float
    #: Size of the whole output. If this is above ``max_bytes``, ``data`` lacks the middle of the output, after ``head_bytes``.
    bytes: int
    head_bytes: Optional[int]
    #: ``timed_out``, ``shell_reopened``, ``killed_by_limit`` or None.
    note: Optional[str]
    #: The output in the form that the farm's own agents receive.
    observation: str

    @property
    def truncated(self) -> bool:
        return self.head_bytes is not None

    @property
    def timed_out(self) -> bool:
        return self.note == "timed_out"

    @property
    def text(self) -> str:
        """The output as text, with a mark where the middle is missing."""
        if self.head_bytes is None:
            return self.data.decode(errors="replace")
        head, tail = self.data[: self.head_bytes], self.data[self.head_bytes :]
        gap = f"\n[{self.bytes - len(self.data)} bytes left out]\n"
        return head.decode(errors="replace") + gap + tail.decode(errors="replace")


@dataclass(frozen=True)
class Verdict:
    """The verdict of the farm. ``judged`` False: the farm did not judge the sandbox's tree, so the sample must not count."""

    judged: bool
    reward: Optional[float]
    resolved: Optional[bool]
    exit_status: Optional[str]
    #: The whole result in the farm's format.
    result: Mapping[str, Any] = field(repr=False)
