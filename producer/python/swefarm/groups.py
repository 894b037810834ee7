"""
Iterates over the groups of one run as they complete. Leaving the loop cancels the run. If the process dies, the farm cancels the run
when its lease expires.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional
from urllib.parse import quote

from .farm import ANSWER_S, Farm, FarmBusy, FarmError, FarmRefusal, in_thread
from .hearts import Hearts
from .pending import may_play
from .playing import Playing
from .progress import Progress
from .sample import Failure, Sample
from .wire import failure_of, sample_of, seconds_of

logger = logging.getLogger(__name__)

#: Longest wait of one call for a group, in seconds.
WAIT_S = 30.0
#: Longest wait in seconds while the progress is shown. The client fetches the number of ended rollouts between two calls.
SHOWN_S = 5.0
#: Seconds between the end of a loop and the cancellation of a run with a key. If an exception ends the whole `with` within this time, the
#: client does not cancel the run, and a restarted process continues it.
LEAVE_S = 1.0


@dataclass(frozen=True)
class Group:
    """All rollouts of one instance in one run. ``end``: ``mixed``, ``uniform``, ``short`` or ``cancelled`` (docs/groups.md)."""

    id: str
    instance_id: str
    end: str
    samples: tuple[Sample, ...]
    #: Value of ``after=`` of :meth:`swefarm.Run.groups` to continue after this group.
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
        self._owner = threading.current_thread()
        try:
            group = self._next()
        except BaseException:  # A notebook's traceback references this object, which delays __del__.
            self._leave()
            raise
        if group is None:
            raise StopIteration
        return self._deliver(group)

    def __aiter__(self) -> "Groups":
        return self

    async def __anext__(self) -> Group:
        self._owner = threading.current_thread()
        try:
            group = await in_thread(self._next)
        except asyncio.CancelledError:
            self._ended = True
            self._leave()
            raise
        if group is None:
            raise StopAsyncIteration
        return self._deliver(group)

    def _deliver(self, group: Group) -> Group:
        # An interrupted step changes none of these attributes, so the next step reads the same group.
        self.cursor = group.cursor
        self._at = self.cursor.rpartition(".")[2]
        if group.instance_id in self._waiting:
            self._waiting.remove(group.instance_id)
        self._progress.add(group)
        self._progress.show(self._count)
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
        # Before Python 3.12, a thread that starts during finalization blocks the interpreter for ever. Later versions raise RuntimeError.
        if playing is not None and playing.open and not sys.is_finalizing():
            timer = threading.Timer(LEAVE_S if playing.resumable else 0, playing.end)
            timer.daemon = True
            with contextlib.suppress(RuntimeError):
                timer.start()

    def _next(self) -> Optional[Group]:
        while not self._ended:
            if not may_play(self._owner):
                raise FarmError("the process ends, so its threads read no groups")
            if self.run_id is None:
                self._submit()
            try:
                group = None if self._away else self._read()
            except FarmBusy:  # The farm is reachable.
                continue
            except FarmError as error:
                if self._ended or not may_play(self._owner):
                    continue
                group = self._lost(error)
            else:
                group = self._lost(None) if self._away else group
            if group is not None:
                return group
        return None

    def _submit(self) -> None:
        number, _, at = self.cursor.rpartition(".")
        self._begin(1, self._submission, at)
        while self._number < int(number or 1) and self._continue(at):
            pass

    def _begin(self, number: int, submission: Mapping[str, Any], at: str) -> None:
        key = self._key if number == 1 else f"{self._key}#{number}"
        self._playing = Playing(self.farm, submission, key, self._owner, self._resumable, self._hearts)
        self._begun(self._playing)
        submitted = self._playing.submit()
        self.run_id, self._number, self._at = str(submitted["run_id"]), number, at
        # The client does not know which groups came before `after`, nor which instances a run with `until` draws.
        draws = "until" in submission
        self._known = not draws and at == "0"
        self._waiting = list(submitted["instance_ids"]) if self._known else []
        self._lapsed = self._resumable and not draws and submitted.get("cancelled") == "lease"
        self._rows = dict(zip(submitted["instance_ids"], submission.get("instances", ())))
        self._count, self._rollouts = len(self._waiting), int(submitted["rollouts"])

    def _continue(self, at: str = "0") -> bool:
        """Plays the groups that an expired lease cancelled, in another run. Returns False if no group was cancelled."""
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
        return self._get(f"/v1/runs/{self.run_id}/groups?{query}", wait_s + 60)

    def _get(self, path: str, answer_s: float = ANSWER_S) -> Any:
        return self.farm.call("GET", path, None, answer_s, stop=None if self._playing is None else self._playing.stopped)

    def _read(self) -> Optional[Group]:
        """Returns the next group. Returns None if no group is complete yet, or if the run has ended."""
        wait_s = SHOWN_S if self._progress.shown else WAIT_S
        answer = self._groups_after(self._at, 1, self.keep, wait_s)
        at = str(answer["last_id"])
        cursor = at if self._number == 1 else f"{self._number}.{at}"
        for found in answer["groups"]:
            if not (self._lapsed and found["end"] == "cancelled"):
                return self._group_of(found, cursor)
        self._at, self.cursor = at, cursor
        if answer["groups"]:
            return None
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

    def _group_of(self, found: Mapping[str, Any], cursor: str) -> Group:
        instance = str(found["instance_id"])
        name = f"{self.run_id}/{instance}"
        away: list[FarmError] = []
        samples = [self._sample_of(result, name, away) for result in found["results"]]
        for entry in found["unreadable"]:
            failure = Failure("client", "result_unreadable", str(entry))
            samples.append(Sample.failed(failure, group=name, index=len(samples), instance_id=instance))
        return Group(name, instance, str(found["end"]), tuple(samples), cursor, str(self.run_id))

    def _sample_of(self, result: Mapping[str, Any], group: str, away: list[FarmError]) -> Sample:
        """Fetches a sample. Appends the error of an unreachable farm to ``away``, so that a group waits for the farm only once."""
        known = {
            **{"group": group, "index": result["rollout_index"], "rollout_id": result["rollout_id"]},
            **{"instance_id": result["instance_id"], "exit_status": result["exit_status"] or "", "result": result},
            "seconds": seconds_of(result),
        }
        failure = failure_of(result)
        if result["artifact"] is None and (failure is not None or self.needs_tokens):
            return Sample.failed(failure or Failure("client", "no_tokens", "no trajectory is stored"), **known)
        while True:
            try:
                if away:
                    raise away[0]
                body = self._get(f"/v1/rollouts/{quote(result['rollout_id'])}/sample?{self._query}")
                break
            except FarmBusy:
                if self._ended or not may_play(self._owner):
                    raise
            except (FarmError, FarmRefusal) as error:  # A failed sample leaves the other samples of its group unchanged.
                away += [error] if isinstance(error, FarmError) else []
                return Sample.failed(failure or Failure("client", "not_fetched", str(error)), **known)
        return sample_of(body, group, lines=self.lines, needs_tokens=self.needs_tokens)

    def _lost(self, error: Optional[FarmError]) -> Optional[Group]:
        """
        Returns the next outstanding group, without rewards, after the farm was unreachable for longer than ``patience``. Returns None after
        the last group. Raises ``error`` if the client does not know the outstanding groups.
        """
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
        instance = self._waiting[0]
        name = f"{self.run_id}/{instance}"
        failure = Failure("client", "farm_away", self._why)
        size = int(self._submission["group_size"])
        samples = [Sample.failed(failure, group=name, index=index, instance_id=instance) for index in range(size)]
        return Group(name, instance, "cancelled", tuple(samples), self.cursor, str(self.run_id))
