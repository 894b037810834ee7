"""A farm on this machine: Redis, gateway and workers are processes that end with this process, also when this process is killed."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Optional, Sequence, Union

from .farm import Farm, FarmError, in_thread

#: Supervises a command, and stops the command when standard input has a byte or is closed, at a signal, or when the parent ends. The parent
#: is checked too, because children that a trainer forks can keep the pipe open. The command gets SIGTERM, another SIGTERM after 20 s, and
#: SIGKILL after 20 s more. On Linux the command also gets SIGTERM when the supervisor is killed. Each supervisor has a shared lock on the
#: folder. If the parent has ended, the last supervisor removes the folder.
_SUPERVISOR = """
import contextlib, ctypes, fcntl, os, select, shutil, signal, subprocess, sys, threading
parent, folder = int(sys.argv[1]), sys.argv[2]
lock = os.open(folder, os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_SH)
signals = []
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda *_: signals.append(1))
libc, PR_SET_PDEATHSIG = ctypes.CDLL(None), 1
tie = (lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)) if sys.platform == "linux" else None
child = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL, preexec_fn=tie)
def end():
    while not signals and os.getppid() == parent and not select.select([0], [], [], 0.5)[0]:
        pass
    for stop in (child.terminate, child.terminate, child.kill):
        stop()
        try:
            return child.wait(20)
        except subprocess.TimeoutExpired:
            pass
threading.Thread(target=end, daemon=True).start()
code = child.wait()
if os.getppid() != parent:
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
os._exit(code if code >= 0 else 128 - code)
"""


class LocalFarm(Farm):
    """
    Starts a farm and waits until it is ready, at most ``start_s`` seconds. ``policy_url`` and ``model``: defaults of runs; ``dataset``: a
    file whose instances may be named by id. Each of ``workers`` plays ``concurrency`` rollouts at once (default: by the machine).
    ``swefarm``: the command (default: SWEFARM_BIN, a checkout of the farm around this package or the current folder, PATH). A checkout
    counts only if this user or root owns it and no other user may write it, or if this package is run from it.
    ``state_dir`` keeps images for the next start (default: the farm's own, ``~/.swefarm``). ``serve_args`` and ``worker_args`` are more
    arguments. :meth:`close`, the end of ``with`` or the end of this process ends all processes. Redis starts empty.
    """

    def __init__(
        self,
        *,
        policy_url: Union[str, Sequence[str], None] = None,
        model: Optional[str] = None,
        dataset: Union[str, Path, None] = None,
        runtime: Optional[str] = None,
        workers: int = 1,
        concurrency: Optional[int] = None,
        state_dir: Union[str, Path, None] = None,
        swefarm: Union[str, Path, None] = None,
        serve_args: Sequence[str] = (),
        worker_args: Sequence[str] = (),
        start_s: float = 180.0,
        patience_s: Optional[float] = None,
    ) -> None:
        program = find_swefarm(swefarm)
        self.folder = Path(tempfile.mkdtemp(prefix="swefarm-local-"))
        self._pid = os.getpid()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._until = time.monotonic() + start_s
        token = secrets.token_hex(16)
        self._environment = {
            **os.environ,
            "PATH": f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "SWEFARM_REDIS_URL": f"file:{self.folder}/redis/address.json",
            "SWEFARM_GATEWAY_TOKEN": token,
            "SWEFARM_LOG_FORMAT": "json",
            **({} if state_dir is None else {"SWEFARM_STATE_DIR": str(Path(state_dir).absolute())}),
        }
        urls = [policy_url] if isinstance(policy_url, str) else list(policy_url or ())
        policy = [word for url in urls for word in ("--policy-url", url)] + (["--model", model] if model else [])
        rows = [] if dataset is None else ["--dataset", str(dataset)]
        given = {"--runtime": runtime, "--concurrency": concurrency}
        work = [str(word) for pair in given.items() if pair[1] is not None for word in pair]
        atexit.register(self.close)
        try:
            data = ["--dir", f"{self.folder}/redis", "--local-dir", f"{self.folder}/data", "--host", "127.0.0.1"]
            self._start("redis", [str(program), "redis", *data], '{"')
            serve = [str(program), "serve", "--host", "127.0.0.1", "--port", "0", *rows, *policy, *serve_args]
            ready = json.loads(self._start("gateway", serve, '{"url"'))
            worker = str(program.with_name("swefarm-worker"))
            for number in range(workers):
                self._start(f"worker-{number}", [worker, "run", *work, *worker_args], '"msg":"ready"')
        except BaseException:
            self.close()
            raise
        super().__init__(str(ready["url"]), token, patience_s=patience_s)

    def close(self) -> None:
        """Ends the processes: workers first, Redis last. A repeated call, and a call in a forked process, does nothing."""
        atexit.unregister(self.close)
        if os.getpid() != self._pid:
            return
        for role in ("worker", "gateway", "redis"):
            self._end([name for name in self._processes if name.startswith(role)])
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "LocalFarm":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "LocalFarm":
        return self

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self.close)

    def once(self, *asked: Any, **options: Any) -> Any:
        """
        Does the same as :meth:`Farm.once`. Raises FarmError, without retries, when the gateway, Redis or all workers of this farm have
        ended.
        """
        ended = [name for name, process in list(self._processes.items()) if process.poll() is not None]
        workers = [name for name in self._processes if name.startswith("worker")]
        if {"gateway", "redis"} & {*ended} or (workers and {*workers} <= {*ended}):
            raise FarmError(f"the {ended[-1]} of the local farm ended: {self._log_end(ended[-1])}")
        return super().once(*asked, **options)

    def _log_end(self, name: str) -> str:
        return Path(self.folder, f"{name}.log").read_text(errors="replace")[-2000:].strip()

    def _end(self, names: Sequence[str]) -> None:
        ended = [self._processes.pop(name) for name in names]
        for process in ended:
            if process.stdin is not None:
                with contextlib.suppress(OSError):  # The process has ended.
                    process.stdin.write(b"\n")
                    process.stdin.close()
        for process in ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(90)
            # The supervisor and its command are one process group. The command of a killed supervisor may still run.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, name: str, command: Sequence[str], mark: str) -> str:
        """Starts a command. Returns the first line of its output that contains ``mark``. Raises RuntimeError with the end of its log."""
        log = self.folder / f"{name}.log"
        supervised = [sys.executable, "-c", _SUPERVISOR, str(os.getpid()), str(self.folder), *command]
        with log.open("wb") as output:
            # The processes have a session of their own: only this process receives Ctrl-C, and then ends the others in order.
            process = subprocess.Popen(
                supervised, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, env=self._environment, start_new_session=True
            )
        self._processes[name] = process
        while True:
            ended = process.poll()
            text = log.read_text(errors="replace")
            for line in text.splitlines(keepends=True):
                if mark in line and line.endswith("\n"):
                    return line
            if ended is not None or time.monotonic() > self._until:
                how = "did not start in time" if ended is None else f"ended with code {ended}"
                raise RuntimeError(f"the {name} of the local farm {how}: `{' '.join(command)}` printed:\n{self._log_end(name)}")
            time.sleep(0.05)


def find_swefarm(given: Union[str, Path, None] = None) -> Path:
    """Returns the path of the command ``swefarm``. Raises FileNotFoundError."""
    named = given or os.environ.get("SWEFARM_BIN")
    if named:
        path = shutil.which(str(named))
        if path is None:
            raise FileNotFoundError(f"swefarm: {named} (the argument, or SWEFARM_BIN) is not a program")
        return Path(path).absolute()
    package = Path(__file__).resolve().parent
    for folder in (*package.parents, Path.cwd(), *Path.cwd().parents):
        program = folder / "node_modules/.bin/swefarm"
        if program.exists() and (folder / "producer/bin/swefarm.mjs").exists():
            # The owner of the checkout that contains this package can change this code too.
            if package == folder / "producer/python/swefarm" or _is_own(folder):
                return program
    installed = shutil.which("swefarm")
    if installed is not None:
        return Path(installed).absolute()
    remedy = "run `npm ci` in a checkout of the farm, and set SWEFARM_BIN to its node_modules/.bin/swefarm"
    raise FileNotFoundError(f"swefarm: the command is not installed: {remedy}")


def _is_own(folder: Path) -> bool:
    """Returns False if another user could have put a program into the folder, as into /tmp. A group with the user's number is private."""
    facts = folder.stat()
    is_writable = facts.st_mode & 0o002 or (facts.st_mode & 0o020 and facts.st_gid != facts.st_uid)
    return facts.st_uid in (0, os.getuid()) and not is_writable
