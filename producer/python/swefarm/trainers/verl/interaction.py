"""An interaction for verl up to 0.7: after an answer without a tool call, the model receives the outcome of the tests."""

from __future__ import annotations

from typing import Any, Mapping, Optional
from uuid import uuid4

from verl.interactions.base import BaseInteraction

from swefarm.trainers.verl.session import Verdict, grade
from swefarm.farm import Farm


def outcome_text(verdict: Verdict) -> str:
    """Describes a verdict to the model by counts, without the names of hidden tests."""
    if not verdict.judged:
        return "The tests could not be run."
    if verdict.resolved:
        return "All required tests pass."
    tests: Mapping[str, Any] = (verdict.report or {}).get("tests_status") or {}
    failing = sum(len((tests.get(kind) or {}).get("failure") or []) for kind in ("FAIL_TO_PASS", "PASS_TO_PASS"))
    return f"{failing} required tests do not pass." if failing else "The required tests do not pass."


class TestOutcomeInteraction(BaseInteraction):
    """``interaction_kwargs`` may contain ``session_id``, the session that the tools of this trajectory opened."""

    __test__ = False

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self._sessions: dict[str, Optional[str]] = {}
        self._verdicts: dict[str, Verdict] = {}

    async def start_interaction(self, instance_id: Optional[str] = None, **kwargs: Any) -> str:
        key = instance_id or uuid4().hex
        self._sessions[key] = kwargs.get("session_id")
        return key

    async def generate_response(
        self, instance_id: str, messages: list[dict[str, Any]], **kwargs: Any
    ) -> tuple[bool, str, float, dict[str, Any]]:
        session_id = kwargs.get("session_id") or self._sessions.get(instance_id)
        if not session_id:
            return True, "Nothing was run.", 0.0, {"judged": False}
        verdict = await grade(Farm.of(self.config), str(session_id), float(self.config.get("wait_s") or 7200))
        self._verdicts[instance_id] = verdict
        return True, outcome_text(verdict), verdict.reward, {"judged": verdict.judged}

    async def calculate_score(self, instance_id: str, **kwargs: Any) -> float:
        verdict = self._verdicts.get(instance_id)
        return verdict.reward if verdict else 0.0

    async def finalize_interaction(self, instance_id: str, **kwargs: Any) -> None:
        self._sessions.pop(instance_id, None)
        self._verdicts.pop(instance_id, None)
