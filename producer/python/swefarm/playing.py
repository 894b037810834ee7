"""A submitted run: its lease while the process lives, and its cancellation."""

from __future__ import annotations

import threading
from typing import Any, Mapping, Optional

from .farm import Farm, FarmError, header_of
from .hearts import Hearts
from .pending import Pending, cancel


class Playing(Pending):
    """
    A run, whose lease is renewed under the name ``session_id``. When the process ends, a run with a key is left to a successor, and any
    other run is cancelled.
    """

    def __init__(
        self, farm: Farm, submission: Mapping[str, Any], key: str, owner: threading.Thread, resumable: bool, hearts: Optional[Hearts]
    ) -> None:
        super().__init__(farm)
        self.session_id, self.resumable = "", resumable
        self._submission, self._headers = submission, {"idempotency-key": header_of(key)}
        self._owner, self._hearts = owner, hearts

    def submit(self) -> Any:
        """Returns the farm's answer. Raises FarmRefusal, FarmError."""
        try:
            if not self.enter(self._owner):
                raise FarmError("the process ends, so its threads begin no runs")
            self.asked = True
            submitted = self.farm.call("POST", "/v1/runs", self._submission, headers=self._headers, stop=self.stopped)
        except Exception:  # The farm has no such run, or cancels it at the end of its lease.
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
        """Ends the lease, and cancels the rollouts without result. Never raises: the expired lease cancels what this call could not."""
        if cancels:
            cancel([self])
        elif self.open:
            self.close()

    def close(self) -> None:
        super().close()
        if self._hearts is not None:
            self._hearts.forget(self.session_id)
