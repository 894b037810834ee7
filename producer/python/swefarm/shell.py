"""A bash whose folder, variables and functions last from one command to the next, as in a terminal."""

from __future__ import annotations

import threading
import uuid
from shlex import quote
from typing import Optional

from .output import Output
from .sandbox import Sandbox

#: Runs at the end of each command, also after ``exit``. Does not save variables of bash itself and of the farm.
_SAVE = r"""
__sf_save() {
  local code=$?
  { declare -p | grep -avE '^declare -[a-zA-Z]*r|^declare -[-a-zA-Z]+ (BASH[A-Z_]*|FUNCNAME|PIPESTATUS|DIRSTACK|GROUPS|RANDOM|SRANDOM|SECONDS|EPOCH[A-Z]*|LINENO|PPID|UID|EUID|SHELLOPTS|COMP_[A-Z]*|OLDPWD|PWD|_|code|__sf_[a-z_]*)(=|$)'
    declare -f | sed -n '/^__sf_/,/^}/!p'
    shopt -p; alias -p
    printf 'cd -- %q\n' "$PWD"; } >"$__sf_state.new" 2>/dev/null && mv -f "$__sf_state.new" "$__sf_state"
  exit $code
}
"""


class Shell:
    """Runs commands in one sandbox with a shared shell state. A command that exceeds its time limit does not change the state."""

    def __init__(self, sandbox: Sandbox, cwd: Optional[str] = None) -> None:
        self._sandbox = sandbox
        self._state = f"/tmp/.shell-{uuid.uuid4().hex[:12]}"
        self._cwd = cwd
        self._lock = threading.Lock()

    def run(self, command: str, timeout_s: Optional[float] = None, max_bytes: int = 1024**2) -> Output:
        """Runs a command, as :meth:`Sandbox.run` does."""
        start = f"cd -- {quote(self._cwd)}" if self._cwd else ":"
        script = (
            f"__sf_state={self._state}{_SAVE}"
            f"shopt -s expand_aliases\n"
            f"if [ -f $__sf_state ]; then . $__sf_state 2>/dev/null; else {start}; fi\n"
            f"trap __sf_save EXIT\n"
            f"eval {quote(command)}\n"
        )
        with self._lock:
            return self._sandbox.run(script, timeout_s=timeout_s, max_bytes=max_bytes)
