"""
Cancels the rollouts and runs of this process at process exit, in all threads. If a cancellation fails, the farm later cancels rollouts
that no client requests, and runs without heartbeats.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  # Registers its exit hook first: exit hooks run in reverse order.
import contextlib
import logging
import os
import threading
import time
from typing import Optional, Sequence

from .farm import Farm, FarmBusy, FarmRefusal

logger = logging.getLogger(__name__)

#: Time limit of all cancellations, in seconds. A preempted process must exit before a deadline.
CANCEL_S = 10.0
_pending: "set[Pending]" = set()
_ending = threading.Event()


class Pending:
    """A rollout or a run. If an interrupt ends its cancellation, process exit repeats the cancellation."""

    #: Whether another process may continue the run. Process exit does not cancel such a run.
    resumable = False

    def __init__(self, farm: Farm) -> None:
        self.farm = farm
        #: Id of the rollout or run on the farm; empty until the farm answers.
        self.id = ""
        #: Whether the farm may have the rollout or run, even if no answer returned the id.
        self.asked = False
        #: Set by a cancellation, to stop retries.
        self.stopped = threading.Event()
        self._ended: Optional[str] = None
        self._guard, self._pid = threading.RLock(), os.getpid()

    def ask_again(self, answer_s: float) -> str:
        """Repeats the idempotent request that starts the rollout or run. Returns the id."""
        raise NotImplementedError

    @property
    def open(self) -> bool:
        """Whether this process must still cancel the rollout or run. After a fork, only the parent cancels."""
        return self._ended != self.id and self._pid == os.getpid()

    def enter(self, owner: threading.Thread) -> bool:
        """Registers the cancellation at process exit. Returns False if ``owner`` may start nothing: see :func:`may_play`."""
        _pending.add(self)
        return may_play(owner)

    def named(self, id: str) -> None:
        """Stores the id that the farm returned. Repeats a cancellation that was requested before the id was known."""
        with self._guard:
            self.id = id
            if self._ended is None or not self.open:
                return
            if self.stopped.is_set():
                cancel([self])
            else:
                self.close()

    def close(self) -> None:
        """Records that the rollout or run needs no cancellation."""
        self._ended = self.id
        _pending.discard(self)


def may_play(owner: threading.Thread) -> bool:
    """
    Returns whether the thread ``owner`` may start or continue rollouts and runs. At process exit, only the main thread starts rollouts, in
    exit handlers. Blocks a daemon thread for ever, because a loop in this thread would repeat the refused call without a pause.
    """
    if not _ending.is_set() or owner is threading.main_thread():
        return True
    if owner.daemon and threading.current_thread().daemon:
        threading.Event().wait()
    return False


def cancel(every: "Sequence[Pending]") -> None:
    """Cancels rollouts and runs with one request for each run. Logs every Exception instead of raising it."""
    mine = [one for one in every if one.open]
    for one in mine:
        one.stopped.set()
    with contextlib.ExitStack() as guards:
        farms: dict[Farm, list[Pending]] = {}
        for one in mine:
            guards.enter_context(one._guard)  # Waits for another thread's request, so that the process does not exit before it.
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
    for one in unnamed:  # The client did not read the answer with the id.
        with contextlib.suppress(FarmRefusal, FarmBusy):  # The farm has no such rollout or run.
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
        except (FarmRefusal, FarmBusy) as error:  # The farm is reachable, so the loop continues with the other runs.
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


# Python waits for non-daemon threads and for pools before it calls the handlers of atexit. Processes of multiprocessing do not call these
# handlers. The private hook runs in every process, before Python waits. The handler of atexit repeats a cancellation that an interrupt
# ended, and cancels the rollouts that other exit handlers started.
atexit.register(_end)
with contextlib.suppress(RuntimeError):  # Python raises it if this module is imported at process exit.
    getattr(threading, "_register_atexit", atexit.register)(_end)
