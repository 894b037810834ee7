"""Rollouts for a trainer: groups as they complete, or one sample at a time, from the policy that the trainer serves."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
import uuid
from typing import Any, Mapping, Optional, Sequence, Union

from .farm import Farm, FarmError, FarmRefusal, in_thread
from .groups import WAIT_S, Groups, Playing
from .hearts import Hearts
from .progress import Progress
from .sample import Failure, Sample
from .settings import Sampling, merged, plain, rows_of
from .wire import sample_of

logger = logging.getLogger(__name__)

#: A row of a dataset, or the id of an instance in the gateway's dataset.
Row = Union[Mapping[str, Any], str]
#: Seconds without a heartbeat after which the farm cancels a run.
LEASE_S = 900.0
#: Statuses of refusals that a change of the request or of the configuration would end. They are raised at once.
CONFIGURATION = (400, 401, 403, 404, 409, 413, 415, 422)


class Run:
    """
    The settings of rollouts, and the policy that they follow. ``name`` names the policy's record and, with a ``key``, the runs on the
    farm. ``model`` and ``policy_urls`` (with /v1) default to those of the gateway. ``settings`` are further keys of a run
    (docs/running.md), such as ``{"agent": {"step_limit": 50}}``, and win over the other arguments. ``lines="all"``: samples have the
    other trained lines of agents that come as programs. ``routed_experts``: they have the stored experts of a mixture-of-experts
    model. ``lease_s``: the farm cancels runs of a process that was silent for so long;
    None: never. As a context manager (also ``async with``) it cancels at the end what is under way; after an exception, runs with a
    ``key`` go on until their lease ends, so that a restarted trainer continues them.
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
        self._settings = plain(settings or {})
        self._follows = False
        self._lease_s = lease_s
        self._hearts = None if lease_s is None else Hearts(lease_s, "/v1/runs/heartbeat", "run_ids", {"lease_seconds": lease_s})
        self._playing: list[Playing] = []

    def policy(self, urls: Optional[Sequence[str]] = None, *, model: Optional[str] = None, version: Optional[str] = None) -> None:
        """
        Reports what new turns use: endpoints (with /v1), the model's name there, and the version of its weights. From then on the
        rollouts of this run follow the farm's policy ``name``, so that a change reaches those under way. Raises FarmRefusal, FarmError.
        """
        self.policy_urls = self.policy_urls if urls is None else list(urls)
        self._set(model=model, version=version, state="serving")

    def update(self, version: str, *, urls: Optional[Sequence[str]] = None, model: Optional[str] = None) -> "Update":
        """
        Returns a context manager (also ``async with``) around a change of the weights: within it the farm sends no request, and no
        timeout runs; after it all new turns have the new version. After an exception the policy stays stopped, because its weights
        are unknown: call :meth:`policy` when they are in order.
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
        Plays ``n`` rollouts of each row, and iterates over the groups as they complete. The same ``key`` in a run of the same name is
        the same run on the farm, also after a restart of this process; ``after=group.cursor`` skips what was consumed. ``keep="mixed"``
        delivers groups whose rewards differ alone. ``until`` draws instances until enough groups count (docs/groups.md); the rows may
        then be left out, for all of the gateway's dataset. The loop ends early without rewards if the farm is away for longer than its
        patience. Raises FarmRefusal for rows and settings that the farm does not take.
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
        """:meth:`rollout` for callers without asyncio; blocks until the sample is there."""
        call = _Call(self, instance, **options)
        try:
            return self._play(call)
        except BaseException:  # Ctrl-C
            call.cancel()
            raise

    async def rollout(self, instance: Row, **options: Any) -> Sample:
        """
        Plays one rollout. Options: ``group`` and ``index`` of the sample; ``request_id`` (the same id is the same rollout, until an
        hour after its end); ``policy_urls``, ``model``, ``version``, ``headers``, ``extra_body``, ``sampling`` (keys above
        those of the run), ``max_response_tokens`` of this rollout alone; ``timeout_s``.
        A rollout that fails after its retries, that does not end within ``timeout_s``, or whose farm is away for longer than its
        patience is a sample without reward. Raises FarmRefusal for what the farm does not take. A cancelled coroutine cancels the
        rollout, and a process that dies loses it after gateway_collector_grace_seconds.
        """
        call = _Call(self, instance, **options)
        try:
            return await in_thread(lambda: self._play(call))
        except asyncio.CancelledError:
            threading.Thread(target=call.cancel, daemon=True).start()
            raise

    def settings(self) -> dict[str, Any]:
        """Returns the settings of a run on the farm."""
        policy: dict[str, Any] = {
            **{"token_mode": self.token_mode, "require_tokens": self.token_mode != "text"},
            "sampling": self.sampling.settings(),
        }
        if self.model is not None:
            policy["model"] = self.model
        if self._follows:
            # The record has the endpoints and the version, which may differ when a run is resumed.
            policy["name"] = self.name
        elif self.policy_urls:
            policy["urls"] = self.policy_urls
        agent = {} if self.max_response_tokens is None else {"max_sequence_tokens": self.max_response_tokens}
        return merged({"kind": self.kind, "policy": policy, "agent": agent}, self._settings)

    def close(self, cancels: bool = True) -> None:
        """Ends what is under way. ``cancels`` False: groups with a ``key`` go on until their lease ends."""
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

    def _set(self, *, model: Optional[str] = None, version: Optional[str] = None, state: str) -> None:
        change: dict[str, Any] = {"state": state}
        if self.policy_urls:
            change["endpoints"] = self.policy_urls
        if version is not None:
            change["version"] = self.version = version
        if model is not None and model != self.model:
            change["model"] = model
        self.farm.call("PUT", f"/v1/policies/{self.name}", change)
        self._follows = True

    def _play(self, call: "_Call") -> Sample:
        while True:
            if call.over():
                call.cancel()
                return call.lost("timeout", f"no result within {call.timeout_s:.0f} s; the rollout is cancelled")
            try:
                answer = self.farm.call("POST", "/v1/rollouts", call.body(), WAIT_S + 60)
            except FarmError as error:
                return call.lost("farm_away", str(error))
            except FarmRefusal as error:
                if error.status in CONFIGURATION:
                    raise
                return call.lost(error.code, str(error))
            call.rollout_id = str(answer["rollout_id"])
            if answer["status"] == "done":
                return sample_of(answer, call.group, index=call.index, lines=self.lines, needs_tokens=self.token_mode != "text")
            if call.cancelled:
                call.cancel()
                return call.lost("cancelled", "the caller cancelled the rollout")


class Update:
    """See :meth:`Run.update`."""

    def __init__(self, run: Run, version: str, urls: Optional[Sequence[str]], model: Optional[str]) -> None:
        self._run, self._version, self._urls, self._model = run, version, urls, model

    def __enter__(self) -> None:
        self._run._set(state="updating")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            logger.warning("swefarm: policy %s stays stopped, because the update failed: report it with Run.policy()", self._run.name)
            return
        if self._urls is not None:
            self._run.policy_urls = list(self._urls)
        self._run._set(model=self._model, version=self._version, state="serving")

    async def __aenter__(self) -> None:
        await in_thread(self.__enter__)

    async def __aexit__(self, kind: object, *_: object) -> None:
        await in_thread(lambda: self.__exit__(kind))


class _Call:
    """One rollout that somebody waits for. The body of its requests is the same in every try, so that all of them are one rollout."""

    def __init__(
        self,
        run: Run,
        instance: Row,
        *,
        group: str = "",
        index: int = 0,
        request_id: Optional[str] = None,
        policy_urls: Optional[Sequence[str]] = None,
        model: Optional[str] = None,
        version: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        extra_body: Optional[Mapping[str, Any]] = None,
        sampling: Optional[Mapping[str, Any]] = None,
        max_response_tokens: Optional[int] = None,
        timeout_s: Optional[float] = None,
    ) -> None:
        self.farm, self.group, self.index, self.timeout_s = run.farm, group, index, timeout_s
        self.rollout_id, self.cancelled = "", False
        self._until = None if timeout_s is None else time.monotonic() + timeout_s
        self._instance = instance if isinstance(instance, str) else plain(instance)
        settings = run.settings()
        own = {"urls": policy_urls, "model": model, "version": version, "headers": headers, "extra_body": extra_body, "sampling": sampling}
        policy = merged(settings["policy"], {key: plain(value) for key, value in own.items() if value is not None})
        if policy_urls is not None:
            policy.pop("name", None)
        agent = {} if max_response_tokens is None else {"max_sequence_tokens": max_response_tokens}
        self._body = {
            "request_id": f"{run.name}/{request_id or uuid.uuid4().hex}",
            "instance": self._instance,
            "run": {**settings, "policy": policy, "agent": merged(settings["agent"], agent)},
            "lines": run.lines,
            "routed_experts": run.routed_experts,
        }

    def body(self) -> dict[str, Any]:
        left = WAIT_S if self._until is None else max(0.0, self._until - time.monotonic())
        # The first answer names the rollout, which can then be cancelled.
        return {**self._body, "wait_seconds": min(WAIT_S, left) if self.rollout_id else 0}

    def over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def cancel(self) -> None:
        """Never raises: the farm cancels a rollout that nobody asks for."""
        self.cancelled = True
        if not self.rollout_id:
            return
        try:
            run_id = self.rollout_id.split(".", 1)[0]
            self.farm.once("POST", f"/v1/runs/{run_id}/cancel", {"rollouts": [self.rollout_id]}, 10)
        except Exception as error:
            logger.warning("swefarm: %s was not cancelled: %s", self.rollout_id, error)

    def lost(self, code: str, message: str) -> Sample:
        name = self._instance.get("instance_id", "") if isinstance(self._instance, dict) else self._instance
        facts = {"group": self.group, "index": self.index, "rollout_id": self.rollout_id, "instance_id": str(name)}
        return Sample.failed(Failure("client", code, message), **facts)
