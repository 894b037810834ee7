"""
A thread that renews the leases of sandboxes and runs of this process. A driver may compute for minutes between two calls, and the farm
ends the sandboxes and runs of a process without heartbeats.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from typing import Any, Mapping, Optional, Protocol

from .farm import Farm

logger = logging.getLogger(__name__)


_hearts: "weakref.WeakSet[Hearts]" = weakref.WeakSet()


class Living(Protocol):
    """A session or a run with the id ``session_id``, whose lease is renewed."""

    farm: Farm
    session_id: str


class Hearts:
    """
    Renews leases until :meth:`forget`, or until the farm does not know the session. ``lease_s``: longest lease in seconds. ``field``: the
    field of the ids in the body that is sent to ``path``; ``body``: its other fields.
    """

    def __init__(
        self,
        lease_s: float,
        path: str = "/v1/sessions/heartbeat",
        field: str = "session_ids",
        body: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self._path, self._field, self._body = path, field, dict(body or {})
        self._every_s = lease_s / 4
        self.reset()
        _hearts.add(self)

    def reset(self) -> None:
        """Removes all sessions. A forked process does not inherit the thread of its parent, and does not renew the leases of its parent."""
        self._sessions: dict[str, Living] = {}
        self._thread: Optional[threading.Thread] = None
        self._guard = threading.Lock()
        self._sooner = threading.Event()

    def keep(self, session: Living, lease_s: Optional[float] = None) -> None:
        """Renews the lease of ``session`` four times per ``lease_s`` seconds; default: the longest lease."""
        with self._guard:
            self._sessions[session.session_id] = session
            if lease_s is not None and lease_s / 4 < self._every_s:
                self._every_s = lease_s / 4
                self._sooner.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="swefarm-hearts", daemon=True)
                self._thread.start()

    def forget(self, session_id: str) -> None:
        """Stops renewing the lease of a session."""
        with self._guard:
            self._sessions.pop(session_id, None)

    def beats_for(self, session_id: str) -> bool:
        """Returns whether the lease of a session is renewed."""
        with self._guard:
            return session_id in self._sessions

    def _beat(self) -> None:
        while True:
            self._sooner.wait(self._every_s)
            self._sooner.clear()
            with self._guard:
                if not self._sessions:
                    self._thread = None
                    return
                farms: dict[tuple[str, str], list[Living]] = {}
                for session in self._sessions.values():
                    farms.setdefault((session.farm.url, session.farm.token), []).append(session)
            for sessions in farms.values():
                ids = [session.session_id for session in sessions]
                try:
                    alive = set(sessions[0].farm.once("POST", self._path, {**self._body, self._field: ids}, 10)["alive"])
                except Exception as error:  # The lease lasts four heartbeats, so the next one may succeed in time.
                    logger.warning("swefarm: the heartbeat failed: %s", error)
                    continue
                for session in sessions:
                    if session.session_id not in alive:
                        self.forget(session.session_id)


def _reset_all() -> None:
    for hearts in list(_hearts):
        hearts.reset()


if hasattr(os, "register_at_fork"):  # Windows has no fork.
    os.register_at_fork(after_in_child=_reset_all)
