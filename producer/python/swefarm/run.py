"""Rollouts for a trainer: groups as they complete, or one sample at a time, from the policy that the trainer serves."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import uuid
from typing import Any, Mapping, Optional, Sequence

from .call import Call, Row
from .farm import Farm, in_thread
from .groups import Groups
from .hearts import Hearts
from .playing import Playing
from .progress import Progress
from .sample import Sample
from .settings import Sampling, merged, plain, rows_of

logger = logging.getLogger(__name__)

#: Seconds without a heartbeat after which the farm cancels a run.
LEASE_S = 900.0


class Run:
    """
    The settings of rollouts, and the policy that they follow. ``name`` names the policy's record and, with a ``key``, the runs on the
    farm. ``model`` and ``policy_urls`` (with /v1) default to those of the gateway; a restarted process must pass the same ``model``.
    ``settings`` are further keys of a run (docs/running.md), such as ``{"agent": {"step_limit": 50}}``, and win over the other arguments.
    ``lines="all"``: samples include the other trained lines of agents that come as programs. ``routed_experts``: samples include the
    stored experts of a mixture-of-experts model. ``lease_s``: the farm cancels the runs of a process without heartbeats after so many
    seconds; None: never. As a context manager (also ``async with``) it cancels the unfinished rollouts at the end. After an exception,
    runs with a ``key`` continue until their lease ends, so that a restarted trainer continues them.
    """

    def __init__(
        self,
        farm: Farm,
        name: str,
        *,
        model: Optional[str] = None,
        policy_urls: Sequence[str] = (),
        token_mode: str = "token-in",
        sampling: Optional[Sampling] = None,
        max_response_tokens: Optional[int] = None,
        kind: str = "training",
        lines: str = "main",
        routed_experts: bool = False,
        lease_s: Optional[float] = LEASE_S,
        settings: Optional[Mapping[str, Any]] = None,
        progress: Optional[bool] = None,
    ) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            raise ValueError(f"name: expected letters, digits, dot, - and _, at most 64, got {name!r}")
        if lines not in ("main", "all"):
            raise ValueError(f"lines: expected main or all, got {lines!r}")
        self.farm, self.name, self.model, self.policy_urls = farm, name, model, list(policy_urls)
        self.token_mode, self.sampling, self.max_response_tokens = token_mode, sampling or Sampling(), max_response_tokens
        self.kind, self.lines, self.routed_experts, self.progress = kind, lines, routed_experts, progress
        self.version: Optional[str] = None
        self._model = model
        self._settings = plain(settings or {})
        self._follows = False
        self._lease_s = lease_s
        self._hearts = None if lease_s is None else Hearts(lease_s, "/v1/runs/heartbeat", "run_ids", {"lease_seconds": lease_s})
        self._playing: list[Playing] = []

    def policy(self, urls: Optional[Sequence[str]] = None, *, model: Optional[str] = None, version: Optional[str] = None) -> None:
        """
        Reports what new turns use: endpoints (with /v1), the model's name there, and the version of its weights. From then on the rollouts
        of this run follow the farm's policy ``name``, so that a change reaches running rollouts. Raises FarmRefusal, FarmError.
        """
        self.policy_urls = self.policy_urls if urls is None else list(urls)
        # The record may have the model of an earlier process.
        self._set(model=model or self.model, version=version, state="serving")

    def update(self, version: str, *, urls: Optional[Sequence[str]] = None, model: Optional[str] = None) -> "Update":
        """
        Returns a context manager (also ``async with``) around a change of the weights. Within it the farm sends no request, and no timeout
        runs; after it all new turns have the new version. After an exception the policy stays stopped, because its weights are unknown:
        call :meth:`policy` when they are complete.
        """
        return Update(self, version, urls, model)

    def groups(
        self,
        rows: Optional[Sequence[Row]] = None,
        n: int = 8,
        *,
        key: Optional[str] = None,
        after: str = "0",
        keep: str = "all",
        until: Optional[Mapping[str, Any]] = None,
    ) -> Groups:
        """
        Plays ``n`` rollouts of each row, and iterates over the groups as they complete. The same ``key`` in a run of the same name is the
        same run on the farm, also after a restart of this process; ``after=group.cursor`` skips the consumed groups. ``keep="mixed"``
        delivers only groups whose rewards differ. ``until`` draws instances until enough groups count (docs/groups.md); without rows it
        draws from all of the gateway's dataset. The loop ends early without rewards if the farm is unreachable for longer than its
        patience. Raises FarmRefusal for rows and settings that the farm refuses.
        """
        submission: dict[str, Any] = {"group_size": n, "run": self.settings()}
        given = {"instances": rows_of(rows), "until": until, "lease_seconds": self._lease_s}
        submission.update({name: value for name, value in given.items() if value is not None})
        self._playing = [playing for playing in self._playing if playing.open]
        return Groups(
            self.farm,
            submission,
            idempotency_key=f"{self.name}/{key or uuid.uuid4().hex}",
            resumable=key is not None,
            after=after,
            keep=keep,
            lines=self.lines,
            routed_experts=self.routed_experts,
            needs_tokens=self.token_mode != "text",
            hearts=self._hearts,
            progress=Progress(f"{self.name} {key or ''}".strip(), self.progress),
            begun=self._playing.append,
        )

    def play(self, instance: Row, **options: Any) -> Sample:
        """Does the same as :meth:`rollout` for callers without asyncio: blocks until the sample arrives."""
        return self._call(instance, options).play()

    async def rollout(self, instance: Row, **options: Any) -> Sample:
        """
        Plays one rollout. Options: ``group`` (default: the instance's id) and ``index`` of the sample; ``request_id`` (the same id is the
        same rollout, until an hour after its answer; the farm plays a cancelled one again); ``policy_urls``, ``model``, ``version``,
        ``headers``, ``extra_body``, ``sampling`` (keys that win over those of the run) and ``max_response_tokens`` of this rollout alone;
        ``timeout_s``. A rollout that fails after its retries, that does not end within ``timeout_s``, or whose farm is unreachable for
        longer than its patience is a sample without reward. Raises FarmRefusal for a request that the farm refuses. A cancelled coroutine
        cancels the rollout. If the process dies, the farm cancels the rollout after gateway_collector_grace_seconds.
        """
        call = self._call(instance, options)
        try:
            return await in_thread(call.play)
        except asyncio.CancelledError:
            # Not a daemon: a process that ends now still sends the request, which takes at most 10 s.
            threading.Thread(target=call.cancel, name="swefarm-cancel").start()
            raise

    def settings(self) -> dict[str, Any]:
        """Returns the settings of a run on the farm."""
        policy: dict[str, Any] = {
            **{"token_mode": self.token_mode, "require_tokens": self.token_mode != "text"},
            "sampling": self.sampling.settings(),
        }
        if self._model is not None:
            policy["model"] = self._model
        if self._follows:
            # The record has the endpoints and the version, which may differ when a run is resumed.
            policy["name"] = self.name
        elif self.policy_urls:
            policy["urls"] = self.policy_urls
        agent = {} if self.max_response_tokens is None else {"max_sequence_tokens": self.max_response_tokens}
        return merged({"kind": self.kind, "policy": policy, "agent": agent}, self._settings)

    def close(self, cancels: bool = True) -> None:
        """Ends the unfinished rollouts. ``cancels`` False: groups with a ``key`` continue until their lease ends."""
        for playing in self._playing:
            playing.end(cancels or not playing.resumable)
        self._playing = []

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(cancels=kind is None)

    async def __aenter__(self) -> "Run":
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await in_thread(lambda: self.close(cancels=kind is None))

    def _call(self, instance: Row, options: Mapping[str, Any]) -> Call:
        known: dict[str, Any] = {"lines": self.lines, "routed_experts": self.routed_experts, "needs_tokens": self.token_mode != "text"}
        return Call(self.farm, self.name, self.settings(), instance, **known, **options)

    def _set(self, *, model: Optional[str] = None, version: Optional[str] = None, state: str) -> None:
        change: dict[str, Any] = {"state": state}
        if self.policy_urls:
            change["endpoints"] = self.policy_urls
        if version is not None:
            change["version"] = self.version = version
        if model is not None:
            change["model"] = self.model = model
        self.farm.call("PUT", f"/v1/policies/{self.name}", change)
        # A run needs the name of a model. The record's name wins, so a later name would only make the run's settings differ.
        self._model = self._model or self.model
        self._follows = True


class Update:
    """Implements :meth:`Run.update`."""

    def __init__(self, run: Run, version: str, urls: Optional[Sequence[str]], model: Optional[str]) -> None:
        self._run, self._version, self._urls, self._model = run, version, urls, model

    def __enter__(self) -> None:
        self._run._set(state="updating")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            logger.warning("swefarm: policy %s stays stopped, because the update failed: call Run.policy()", self._run.name)
            return
        if self._urls is not None:
            self._run.policy_urls = list(self._urls)
        self._run._set(model=self._model, version=self._version, state="serving")

    async def __aenter__(self) -> None:
        await in_thread(self.__enter__)

    async def __aexit__(self, kind: object, *_: object) -> None:
        await in_thread(lambda: self.__exit__(kind))
