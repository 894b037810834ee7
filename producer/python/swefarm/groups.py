"""
The groups of one run as they complete. Leaving the loop cancels the run; if the process dies, the farm cancels the run at the end of its
lease.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import threading
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional
from urllib.parse import quote

from .farm import Farm, FarmBusy, FarmError, FarmRefusal, header_of, in_thread
from .hearts import Hearts
from .progress import Progress
from .sample import Failure, Sample
from .wire import failure_of, sample_of, seconds_of

logger = logging.getLogger(__name__)

#: Longest wait of one call for a group, in seconds.
WAIT_S = 30.0
#: Longest wait of such a call while the progress is shown. The client counts the ended rollouts between two calls.
SHOWN_S = 5.0
#: Seconds between the end of a loop and the cancellation of a run with a key. An exception that ends the whole `with` within this time
#: leaves the run to a restarted process.
LEAVE_S = 1.0


@dataclass(frozen=True)
class Group:
    """All rollouts of one instance in one run. ``end``: ``mixed``, ``uniform``, ``short`` or ``cancelled`` (docs/groups.md)."""

    id: str
    instance_id: str
    end: str
    samples: tuple[Sample, ...]
    #: ``after=`` of :meth:`swefarm.Run.groups` continues after this group.
    cursor: str = ""
    run_id: str = ""

    @property
    def judged(self) -> list[Sample]:
        """The samples with a reward."""
        return [sample for sample in self.samples if sample.judged]

    @property
    def mixed(self) -> bool:
        """Whether the rewards of the judged samples differ."""
        return len({sample.reward for sample in self.judged}) > 1


class Playing:
    """
    A submitted run, whose lease is renewed under the name ``session_id``. :meth:`end` cancels the rollouts without result, once. When
    the process ends, a run with a key is left to a successor, and any other run is cancelled.
    """

    def __init__(self, farm: Farm, run_id: str, resumable: bool, hearts: Optional[Hearts]) -> None:
        self.farm, self.session_id, self.resumable, self.hearts = farm, run_id, resumable, hearts
        self.open = True
        self._guard, self._pid = threading.RLock(), os.getpid()
        atexit.register(self._exit)
        if hearts is not None:
            hearts.keep(self)

    def end(self, cancels: bool = True) -> None:
        """Ends the lease. Never raises: the expired lease cancels what this call could not cancel."""
        if os.getpid() != self._pid:  # The run belongs to the process that forked this one.
            return
        # Another caller waits for the request, so that the process does not end before it.
        with self._guard:
            if not self.open:
                return
            self.open = False
            if self.hearts is not None:
                self.hearts.forget(self.session_id)
            if cancels:
                try:
                    self.farm.once("POST", f"/v1/runs/{self.session_id}/cancel", {}, 10)
                except Exception as error:
                    logger.warning("swefarm: run %s was not cancelled, the farm does so when the lease expires: %s", self.session_id, error)
        atexit.unregister(self._exit)

    def _exit(self) -> None:
        self.end(cancels=not self.resumable)


class Groups:
    """
    Iterates over groups in the order in which they complete, with ``for`` or ``async for``. The first step submits the run. ``run_id`` is
    the run's id on the farm's page; ``cursor`` is the cursor of the last group. If the lease of a run with a key expired, another run with
    the same key and the next number plays the cancelled groups again. Its cursors are ``NUMBER.ID``.
    """

    def __init__(
        self,
        farm: Farm,
        submission: Mapping[str, Any],
        *,
        idempotency_key: str,
        resumable: bool,
        after: str,
        keep: str,
        lines: str,
        routed_experts: bool,
        needs_tokens: bool,
        hearts: Optional[Hearts],
        progress: Progress,
        begun: Callable[[Playing], None],
    ) -> None:
        self.farm, self.cursor, self.keep, self.lines, self.needs_tokens = farm, after or "0", keep, lines, needs_tokens
        self.run_id: Optional[str] = None
        self._query = f"lines={lines}&routed_experts={str(routed_experts).lower()}"
        self._submission, self._key, self._resumable = submission, idempotency_key, resumable
        self._hearts, self._progress, self._begun = hearts, progress, begun
        self._playing: Optional[Playing] = None
        self._waiting: list[str] = []
        self._ended = self._away = False

    def __iter__(self) -> "Groups":
        return self

    def __next__(self) -> Group:
        try:
            group = self._next()
        except BaseException:  # In a notebook, the traceback of an interrupt references this object.
            self._leave()
            raise
        if group is None:
            raise StopIteration
        return group

    def __aiter__(self) -> "Groups":
        return self

    async def __anext__(self) -> Group:
        try:
            group = await in_thread(self._next)
        except asyncio.CancelledError:
            self._ended = True
            self._leave()
            raise
        if group is None:
            raise StopAsyncIteration
        return group

    def close(self) -> None:
        """Cancels the rollouts without result. Later steps end the loop."""
        self._ended = True
        if self._playing is not None:
            self._playing.end()

    def __del__(self) -> None:
        self._leave()

    def _leave(self) -> None:
        playing = getattr(self, "_playing", None)
        if playing is not None and playing.open:
            timer = threading.Timer(LEAVE_S if playing.resumable else 0, playing.end)
            timer.daemon = True
            timer.start()

    def _next(self) -> Optional[Group]:
        if self._playing is None:
            self._submit()
        while not self._ended:
            try:
                group = None if self._away else self._read()
            except FarmBusy:  # The farm is reachable.
                continue
            except FarmError as error:
                group = self._lost(error)
            else:
                group = self._lost(None) if self._away else group
            if group is not None:
                self._progress.add(group)
                self._progress.show(self._count)
                return group
        return None

    def _submit(self) -> None:
        number, _, at = self.cursor.rpartition(".")
        self._begin(1, self._submission, at)
        while self._number < int(number or 1) and self._continue(at):
            pass

    def _begin(self, number: int, submission: Mapping[str, Any], at: str) -> None:
        key = self._key if number == 1 else f"{self._key}#{number}"
        submitted = self.farm.call("POST", "/v1/runs", submission, headers={"idempotency-key": header_of(key)})
        self.run_id, self._number, self._at = str(submitted["run_id"]), number, at
        # The client does not know which groups came before `after`, nor which instances a run with `until` draws.
        draws = "until" in submission
        self._known = not draws and at == "0"
        self._waiting = list(submitted["instance_ids"]) if self._known else []
        self._lapsed = self._resumable and not draws and submitted.get("cancelled") == "lease"
        self._rows = dict(zip(submitted["instance_ids"], submission.get("instances", ())))
        self._count, self._rollouts = len(self._waiting), int(submitted["rollouts"])
        self._playing = Playing(self.farm, self.run_id, self._resumable, self._hearts)
        self._begun(self._playing)
        if self._ended:  # No loop reads the run any more, and only its lease ends a run with a key.
            self._playing.end(cancels=not self._resumable)

    def _continue(self, at: str = "0") -> bool:
        """Plays the groups that an expired lease cancelled, in another run. Returns False if there are none."""
        cancelled: set[str] = set()
        seen, done = "0", not self._lapsed
        while not done:
            answer = self._groups_after(seen, 20, "all", WAIT_S)
            cancelled |= {str(group["instance_id"]) for group in answer["groups"] if group["end"] == "cancelled"}
            seen, done = str(answer["last_id"]), answer["done"]
        if not cancelled:
            return False
        if self._playing is not None:
            self._playing.end(cancels=False)
        rows = [row for name, row in self._rows.items() if name in cancelled]
        logger.warning("swefarm: the lease of run %s expired: %d groups are played again", self.run_id, len(rows))
        self._begin(self._number + 1, {**self._submission, "instances": rows}, at)
        return True

    def _groups_after(self, at: str, count: int, keep: str, wait_s: float) -> Any:
        query = f"after={quote(at)}&count={count}&keep={keep}&wait_seconds={wait_s}"
        return self.farm.call("GET", f"/v1/runs/{self.run_id}/groups?{query}", None, wait_s + 60)

    def _read(self) -> Optional[Group]:
        """Returns the next group. Returns None if no group is complete yet, or if the run has ended."""
        wait_s = SHOWN_S if self._progress.shown else WAIT_S
        answer = self._groups_after(self._at, 1, self.keep, wait_s)
        self._at = str(answer["last_id"])
        self.cursor = self._at if self._number == 1 else f"{self._number}.{self._at}"
        for found in answer["groups"]:
            return None if self._lapsed and found["end"] == "cancelled" else self._group_of(found)
        if answer["done"]:
            if self._lapsed and self._continue():
                return None
            self._ended = True
            self._progress.show(self._count, end="\n")
            if self._playing is not None:
                self._playing.end(cancels=False)
        elif self._progress.shown:
            with contextlib.suppress(Exception):  # The next read reports an unreachable farm.
                counts = self.farm.once("GET", f"/v1/runs/{self.run_id}", None, 10)
                self._progress.show(self._count, (self._rollouts - int(counts["left"]), self._rollouts))
        return None

    def _group_of(self, found: Mapping[str, Any]) -> Group:
        instance = str(found["instance_id"])
        name = f"{self.run_id}/{instance}"
        away: list[FarmError] = []
        samples = [self._sample_of(result, name, away) for result in found["results"]]
        for entry in found["unreadable"]:
            failure = Failure("client", "result_unreadable", str(entry))
            samples.append(Sample.failed(failure, group=name, index=len(samples), instance_id=instance))
        if instance in self._waiting:
            self._waiting.remove(instance)
        return Group(name, instance, str(found["end"]), tuple(samples), self.cursor, str(self.run_id))

    def _sample_of(self, result: Mapping[str, Any], group: str, away: list[FarmError]) -> Sample:
        """Appends to ``away`` the error of an unreachable farm, so that a group waits for the farm only once."""
        known = {
            **{"group": group, "index": result["rollout_index"], "rollout_id": result["rollout_id"]},
            **{"instance_id": result["instance_id"], "exit_status": result["exit_status"] or "", "result": result},
            "seconds": seconds_of(result),
        }
        failure = failure_of(result)
        if result["artifact"] is None and (failure is not None or self.needs_tokens):
            return Sample.failed(failure or Failure("client", "no_tokens", "no trajectory is stored"), **known)
        try:
            if away:
                raise away[0]
            body = self.farm.call("GET", f"/v1/rollouts/{quote(result['rollout_id'])}/sample?{self._query}")
        except (FarmError, FarmRefusal) as error:  # A failed sample leaves the other samples of its group unchanged.
            away += [error] if isinstance(error, FarmError) else []
            return Sample.failed(failure or Failure("client", "not_fetched", str(error)), **known)
        return sample_of(body, group, lines=self.lines, needs_tokens=self.needs_tokens)

    def _lost(self, error: Optional[FarmError]) -> Optional[Group]:
        """Returns a group without rewards for each outstanding group of a farm that was unreachable for longer than its patience."""
        if error is not None:
            if not self._known:
                raise error
            if not self._waiting:
                self._ended = True
                logger.warning("swefarm: run %s: all groups have arrived, its end was not read: %s", self.run_id, error)
                return None
            logger.warning("swefarm: run %s: %d groups have no reward: %s", self.run_id, len(self._waiting), error)
            self._away, self._why = True, str(error)
        if not self._waiting:
            self._ended = True
            return None
        instance = self._waiting.pop(0)
        name = f"{self.run_id}/{instance}"
        failure = Failure("client", "farm_away", self._why)
        size = int(self._submission["group_size"])
        samples = [Sample.failed(failure, group=name, index=index, instance_id=instance) for index in range(size)]
        return Group(name, instance, "cancelled", tuple(samples), self.cursor, str(self.run_id))
