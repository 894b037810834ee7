"""A farm of sandboxes for agents that work on software: sandboxes for loops that run outside of the farm."""

from .aio import AsyncSandbox
from .farm import Farm, FarmError, FarmRefusal
from .output import FileError, Output, SandboxEnded, SandboxError, SandboxLost, Verdict
from .sandbox import Sandbox
from .shell import Shell

__all__ = [
    "AsyncSandbox",
    "Farm",
    "FarmError",
    "FarmRefusal",
    "FileError",
    "Output",
    "Sandbox",
    "SandboxEnded",
    "SandboxError",
    "SandboxLost",
    "Shell",
    "Verdict",
]
