"""
Rollouts and runs that the farm plays for this process. When the process ends, it cancels them, whichever thread waits for them. The farm
cancels later what this module could not cancel: rollouts that no client requests, and runs without heartbeats.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  # Its hook waits for pools, and a hook that is registered later runs earlier.
import contextlib
import logging
import os
import threading
import time
from typing import Optional, Sequence

from .farm import Farm, FarmBusy, FarmRefusal

logger = logging.getLogger(__name__)

#: Longest time of a cancellation, in seconds. The end of a preempted process has a deadline.
CANCEL_S = 10.0
_pending: "set[Pending]" = set()
_ending = threading.Event()


class Pending:
    """A rollout or a run. Its cancellation is repeated at the end of the process if an interrupt ended the first one."""

    #: Whether another process may continue it, so that the end of this process does not cancel it.
    resumable = False

    def __init__(self, farm: Farm) -> None:
        self.farm = farm
        #: Its id on the farm; empty until the first answer.
        self.id = ""
        #: Whether the farm may have it although no answer named it.
        self.asked = False
        #: Set by a cancellation: retries end.
        self.stopped = threading.Event()
        self._ended: Optional[str] = None
        self._guard, self._pid = threading.RLock(), os.getpid()

    def ask_again(self, answer_s: float) -> str:
        """Repeats the request that begins it, which is idempotent. Returns its id."""
        raise NotImplementedError

    @property
    def open(self) -> bool:
        """Whether this process still has to cancel it. A forked process leaves it to its parent."""
        return self._ended != self.id and self._pid == os.getpid()

    def enter(self, owner: threading.Thread) -> bool:
        """Makes the end of the process cancel it. Returns False if the process already ends: see :func:`may_play`."""
        _pending.add(self)
        return may_play(owner)

    def named(self, id: str) -> None:
        """Takes the id of an answer. Repeats a cancellation that did not know the id."""
        with self._guard:
            self.id = id
            if self._ended is None or not self.open:
                return
            if self.stopped.is_set():
                cancel([self])
            else:
                self.close()

    def close(self) -> None:
        """Records that nothing is left to cancel."""
        self._ended = self.id
        _pending.discard(self)


def may_play(owner: threading.Thread) -> bool:
    """
    Returns whether a rollout or run of the thread ``owner`` may go on. At the end of the process only the main thread begins others, in
    exit handlers. Blocks a daemon thread for ever, because its loop would repeat the refused call as fast as it can.
    """
    if not _ending.is_set() or owner is threading.main_thread():
        return True
    if owner.daemon and threading.current_thread().daemon:
        threading.Event().wait()
    return False


def cancel(every: "Sequence[Pending]") -> None:
    """Cancels rollouts and runs with one request for each run. Raises no Exception."""
    mine = [one for one in every if one.open]
    for one in mine:
        one.stopped.set()
    with contextlib.ExitStack() as guards:
        farms: dict[Farm, list[Pending]] = {}
        for one in mine:
            guards.enter_context(one._guard)  # Another thread may cancel it. The process must not end before its request.
            if one.open:
                farms.setdefault(one.farm, []).append(one)
        for farm, left in farms.items():
            try:
                _send(farm, left, time.monotonic() + CANCEL_S)
            except Exception as error:
                names = ", ".join(one.id or "a rollout or run" for one in left[:4])
                logger.warning("swefarm: %d rollouts and runs were not cancelled (%s): %s", len(left), names, error)
            for one in left:
                one.close()


def _send(farm: Farm, left: "Sequence[Pending]", until: float) -> None:
    unnamed = [one for one in left if one.asked and not one.id]
    _send_named(farm, [one.id for one in left if one.id], until)
    for one in unnamed:  # The answer that names it was not read.
        with contextlib.suppress(FarmRefusal, FarmBusy):  # The farm does not have it.
            one.id = one.ask_again(_seconds_to(until))
    _send_named(farm, [one.id for one in unnamed if one.id], until)


def _send_named(farm: Farm, ids: Sequence[str], until: float) -> None:
    runs: dict[str, list[str]] = {}
    for id in ids:
        runs.setdefault(id.split(".", 1)[0], []).append(id)
    for run_id, members in runs.items():
        whole = run_id in members
        try:
            farm.once("POST", f"/v1/runs/{run_id}/cancel", {} if whole else {"rollouts": members}, _seconds_to(until))
        except (FarmRefusal, FarmBusy) as error:  # The farm is reachable, so the other runs are cancelled.
            logger.warning("swefarm: %s not cancelled: %s", f"run {run_id}" if whole else f"{len(members)} rollouts of run {run_id}", error)


def _seconds_to(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"the farm did not take all cancellations within {CANCEL_S:.0f} s")
    return left


def _end() -> None:
    _ending.set()
    pending = _pending.copy()
    for one in pending:
        if one.open:
            one.stopped.set()
    cancel([one for one in pending if not one.resumable])


# Python waits for threads that are no daemons, and for pools, before it calls the handlers of atexit. Processes of multiprocessing call no
# such handler. The private hook runs before both. The handler of atexit repeats what an interrupt ended, and cancels what others began.
atexit.register(_end)
with contextlib.suppress(RuntimeError):  # This module is imported at the end of the process.
    getattr(threading, "_register_atexit", atexit.register)(_end)
