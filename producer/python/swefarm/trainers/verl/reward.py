"""compute_score for verl: fetches the farm's verdict. Submits the session first if the model did not submit it."""

from __future__ import annotations

import base64
import logging
from typing import Any, Mapping, Optional
from uuid import uuid4

from swefarm.farm import Farm, FarmError, FarmRefusal
from swefarm.sample import UNJUDGED
from swefarm.trainers.verl.dryrun import check_structure, find_patch
from swefarm.trainers.verl.session import SessionOver, Verdict, grade, named_parts, open_session, plain

logger = logging.getLogger(__name__)

#: Default wait for a verdict in seconds: tests may take half an hour, after a wait for a node.
WAIT_S = 7200.0


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Optional[Mapping[str, Any]] = None,
    **settings: Any,
) -> dict[str, Any]:
    """
    Returns the score of a sample, with the same keys for every sample, as verl requires. An unjudged sample has ``judged`` 0.0
    and the score UNJUDGED, which the estimator grpo_judged recognises. The setting ``score_parts`` names reward parts to report.
    """
    extra = dict(extra_info or {})
    patch = find_patch(solution_str) if extra.get("prompt_style") in ("style-2", "style-3") else None
    verdict = await _verdict(extra, patch, settings)
    return {
        "score": verdict.reward if verdict.judged else UNJUDGED,
        "judged": float(verdict.judged),
        "resolved": float(verdict.resolved),
        "acc": verdict.reward,
        "structure": float(check_structure(patch).sound),
        "why": verdict.why,
        **named_parts(verdict.parts, settings.get("score_parts") or ()),
    }


async def _verdict(extra: Mapping[str, Any], patch: Optional[str], settings: Mapping[str, Any]) -> Verdict:
    wait_s = float(settings.get("wait_s") or WAIT_S)
    handle = extra.get("swefarm_session")
    if isinstance(handle, Mapping):
        if not handle.get("farm_url"):
            return Verdict(False, 0.0, False, handle.get("lost") or "dry run")
        if not handle.get("session_id"):
            return Verdict(False, 0.0, False, str(handle.get("lost")))
        if handle.get("lost"):
            logger.warning("swefarm: the result of %s was lost: %s", handle["session_id"], handle["lost"])
            return Verdict(False, 0.0, False, str(handle["lost"]))
        return await grade(Farm.of({**settings, "farm_url": handle["farm_url"]}), str(handle["session_id"]), wait_s)
    if extra.get("prompt_style") in ("style-2", "style-3"):
        return await _grade_patch(extra, patch, settings, wait_s)
    return Verdict(True, 0.0, False, "no command")


async def _grade_patch(
    extra: Mapping[str, Any], patch: Optional[str], settings: Mapping[str, Any], wait_s: float
) -> Verdict:
    """Applies a patch in a new sandbox and grades it there."""
    if patch is None:
        return Verdict(True, 0.0, False, "no patch")
    kwargs = plain(plain(plain(extra.get("tools_kwargs")).get("bash")).get("create_kwargs"))
    encoded = base64.b64encode(patch.encode()).decode()
    try:
        session = await open_session(uuid4().hex, settings, kwargs)
        # The patch is sent in pieces, because the length of a command's argument is limited.
        for at in range(0, len(encoded), 60_000):
            await session.run(f"printf %s {encoded[at:at + 60_000]} >> /tmp/answer.b64")
        applied = await session.run("base64 -d /tmp/answer.b64 | git apply -v -")
    except SessionOver as over:
        return Verdict(False, 0.0, False, str(over))
    except (FarmError, FarmRefusal) as error:
        return Verdict(False, 0.0, False, str(error)[:200])
    verdict = await grade(session.farm, session.session_id, wait_s)
    if verdict.judged and applied["exit_code"] != 0:
        return Verdict(True, 0.0, False, "the patch does not apply")
    return verdict
