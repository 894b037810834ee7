"""Plays one rollout for a trainer. The client repeats the request with one id until the answer contains the sample."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any, Mapping, Optional, Sequence, Union

from .farm import Farm, FarmBusy, FarmError, FarmRefusal
from .groups import WAIT_S
from .pending import Pending, cancel
from .sample import Failure, Sample
from .settings import merged, plain
from .wire import sample_of

#: A row of a dataset, or the id of an instance in the gateway's dataset.
Row = Union[Mapping[str, Any], str]
#: HTTP statuses that a retry cannot change, because the request or the configuration is wrong. The client raises FarmRefusal at once.
CONFIGURATION = (400, 401, 403, 404, 409, 413, 415, 422)
#: Seconds before a retry with the id of a cancelled rollout. The farm removes the id in this time.
AGAIN_S = 0.5
#: Codes of refusals for an ended rollout whose stored trajectory is missing or broken.
GONE = ("artifact_missing", "bad_artifact_locator", "bad_artifact", "artifact_version")


class Call(Pending):
    """
    A rollout with the settings of the run ``name``. The options are those of :meth:`swefarm.Run.rollout`. Every retry sends the same body,
    so the farm plays one rollout.
    """

    def __init__(
        self,
        farm: Farm,
        name: str,
        settings: Mapping[str, Any],
        instance: Row,
        *,
        lines: str,
        routed_experts: bool,
        needs_tokens: bool,
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
        super().__init__(farm)
        self.index, self.timeout_s = index, timeout_s
        self._owner = threading.current_thread()
        self._lines, self._needs_tokens = lines, needs_tokens
        self._until = None if timeout_s is None else time.monotonic() + timeout_s
        self._name = instance if isinstance(instance, str) else str(instance.get("instance_id", ""))
        self.group = group or self._name
        own = {"urls": policy_urls, "model": model, "version": version, "headers": headers, "extra_body": extra_body, "sampling": sampling}
        policy = merged(settings["policy"], {key: plain(value) for key, value in own.items() if value is not None})
        if policy_urls is not None:
            policy.pop("name", None)
        agent = {} if max_response_tokens is None else {"max_sequence_tokens": max_response_tokens}
        self._body = {
            "request_id": f"{name}/{request_id or uuid.uuid4().hex}",
            "instance": instance if isinstance(instance, str) else plain(instance),
            "run": {**settings, "policy": policy, "agent": merged(settings["agent"], agent)},
            "lines": lines,
            "routed_experts": routed_experts,
        }

    def play(self) -> Sample:
        """
        Requests the rollout and returns its sample, with or without a reward. An interrupt cancels the rollout. Raises FarmRefusal for a
        wrong request or configuration.
        """
        if not self.enter(self._owner):
            return self._lost("cancelled", "the process ends")
        try:
            sample = self._play()
        except BaseException:  # Ctrl-C.
            self.cancel()
            raise
        if not (self.stopped.is_set() and self.open):  # Otherwise another thread cancels the rollout.
            self.close()
        return sample

    def _play(self) -> Sample:
        again = 3
        while True:
            # This thread sets `asked` before it reads `stopped`. :meth:`cancel` sets `stopped` before it reads `asked`.
            asked, self.asked = self.asked, True
            if self.stopped.is_set():
                self.asked = asked
                return self._lost("cancelled", "the caller cancelled the rollout")
            if self._is_over():
                self.cancel()
                return self._lost("timeout", f"no result within {self.timeout_s:.0f} s; the rollout is cancelled")
            try:
                answer = self.farm.call("POST", "/v1/rollouts", self._request(), WAIT_S + 60, patient=False, stop=self.stopped)
            except FarmBusy as busy:
                self.asked = False
                self.stopped.wait(busy.retry_after_s if self._until is None else min(busy.retry_after_s, self._left()))
                continue
            except FarmError as error:
                if self.stopped.is_set():
                    continue
                return self._lost("farm_away", str(error))
            except FarmRefusal as error:
                self.asked = False
                if error.code in GONE:
                    return self._lost("not_fetched", str(error))
                if error.status in CONFIGURATION:
                    raise
                return self._lost(error.code, str(error))
            # An earlier caller cancelled the rollout of this id. The farm removes the id after this answer.
            if again and not self.id and answer["status"] == "done" and answer["result"]["outcome"] == "cancelled":
                again -= 1
                self.stopped.wait(AGAIN_S)
                continue
            if answer["status"] == "done":
                return sample_of(answer, self.group, index=self.index, lines=self._lines, needs_tokens=self._needs_tokens)
            self.named(str(answer["rollout_id"]))

    def _request(self) -> dict[str, Any]:
        # The first answer contains the rollout's id, which a cancellation needs.
        return {**self._body, "wait_seconds": min(WAIT_S, self._left()) if self.id else 0}

    def _left(self) -> float:
        return WAIT_S if self._until is None else max(0.0, self._until - time.monotonic())

    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def ask_again(self, answer_s: float) -> str:
        return str(self.farm.once("POST", "/v1/rollouts", self._request(), answer_s)["rollout_id"])

    def cancel(self) -> None:
        """Cancels the rollout. Never raises, because the farm also cancels a rollout that no client requests."""
        self.stopped.set()
        cancel([self])

    def _lost(self, code: str, message: str) -> Sample:
        facts = {"group": self.group, "index": self.index, "rollout_id": self.id, "instance_id": self._name}
        return Sample.failed(Failure("client", code, message), **facts)
