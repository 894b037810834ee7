"""A farm of rollouts of agents that work on software: samples for a trainer, and sandboxes for loops that run outside of the farm."""

from .aio import AsyncSandbox
from .farm import Farm, FarmBusy, FarmError, FarmRefusal, HoldExpired
from .groups import Group, Groups
from .local import LocalFarm
from .output import FileError, Output, SandboxEnded, SandboxError, SandboxLost, Verdict
from .run import Run
from .sample import UNJUDGED, BrokenTokens, Failure, Sample, Segment, Span, Turn, judged_advantages
from .sandbox import Sandbox
from .settings import Sampling
from .shell import Shell
from .shim import BadRequest, PolicyShim

__all__ = [
    "AsyncSandbox",
    "BadRequest",
    "BrokenTokens",
    "Failure",
    "Farm",
    "FarmBusy",
    "FarmError",
    "FarmRefusal",
    "FileError",
    "Group",
    "Groups",
    "HoldExpired",
    "LocalFarm",
    "Output",
    "PolicyShim",
    "Run",
    "Sample",
    "Sampling",
    "Sandbox",
    "SandboxEnded",
    "SandboxError",
    "SandboxLost",
    "Segment",
    "Shell",
    "Span",
    "Turn",
    "UNJUDGED",
    "Verdict",
    "judged_advantages",
]
