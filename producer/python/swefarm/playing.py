"""Submits a run, renews its lease while the process lives, and cancels it."""

from __future__ import annotations

import threading
from typing import Any, Mapping, Optional

from .farm import Farm, FarmError, header_of
from .hearts import Hearts
from .pending import Pending, cancel


class Playing(Pending):
    """
    A run whose lease is renewed under the name ``session_id``. Process exit cancels a run without a key. Another process may continue a
    run with a key.
    """

    def __init__(
        self, farm: Farm, submission: Mapping[str, Any], key: str, owner: threading.Thread, resumable: bool, hearts: Optional[Hearts]
    ) -> None:
        super().__init__(farm)
        self.session_id, self.resumable = "", resumable
        self._submission, self._headers = submission, {"idempotency-key": header_of(key)}
        self._owner, self._hearts = owner, hearts

    def submit(self) -> Any:
        """Submits the run and returns the farm's answer. Raises FarmRefusal, FarmError."""
        try:
            if not self.enter(self._owner):
                raise FarmError("the process ends, so its threads begin no runs")
            self.asked = True
            submitted = self.farm.call("POST", "/v1/runs", self._submission, headers=self._headers, stop=self.stopped)
        except Exception:  # The farm has no such run, or cancels the run when its lease expires.
            self.close()
            raise
        self.named(str(submitted["run_id"]))
        return submitted

    def ask_again(self, answer_s: float) -> str:
        return str(self.farm.once("POST", "/v1/runs", self._submission, answer_s, self._headers)["run_id"])

    def named(self, id: str) -> None:
        with self._guard:
            self.session_id = id
            super().named(id)
            if self.open and self._hearts is not None:
                self._hearts.keep(self)

    def end(self, cancels: bool = True) -> None:
        """Ends the lease, and cancels the open rollouts. Never raises: when the lease expires, the farm cancels the remaining rollouts."""
        if cancels:
            cancel([self])
        elif self.open:
            self.close()

    def close(self) -> None:
        super().close()
        if self._hearts is not None:
            self._hearts.forget(self.session_id)
