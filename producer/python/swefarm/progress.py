"""One line that shows the progress of a run's groups, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .groups import Group


class Progress:
    """Writes to stderr. ``shown`` None: only on a terminal or in a notebook."""

    def __init__(self, title: str, shown: Optional[bool] = None) -> None:
        self.title = title
        self.shown = (sys.stderr.isatty() or "ipykernel" in sys.modules) if shown is None else shown
        self._began = time.monotonic()
        self._rewards: list[float] = []
        self._ends: dict[str, int] = {}
        self._unjudged = 0
        self._width = 0

    def add(self, group: "Group") -> None:
        """Counts a group that was delivered."""
        self._ends[group.end] = self._ends.get(group.end, 0) + 1
        self._rewards += [sample.reward for sample in group.judged if sample.reward is not None]
        self._unjudged += len(group.samples) - len(group.judged)

    def show(self, groups: int, rollouts: Optional[tuple[int, int]] = None, end: str = "") -> None:
        """
        Writes the line. ``groups``: the number of groups, 0 if unknown; ``rollouts``: the number of rollouts with a result, and of all
        rollouts.
        """
        if not self.shown:
            return
        done = sum(self._ends.values())
        parts = [f"{done}/{groups} groups" if groups else f"{done} groups"]
        parts += [f"{count} {name}" for name, count in sorted(self._ends.items())]
        if rollouts:
            parts.append(f"{rollouts[0]}/{rollouts[1]} rollouts")
        if self._unjudged:
            parts.append(f"{self._unjudged} unjudged")
        if self._rewards:
            parts.append(f"reward {sum(self._rewards) / len(self._rewards):.3f}")
        seconds = int(time.monotonic() - self._began)
        line = f"{self.title}: {' · '.join(parts)} · {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        print(f"\r{line.ljust(self._width)}", end=end, file=sys.stderr, flush=True)
        self._width = len(line)
