"""Reads the samples that the farm sends. The module never tokenises: the ids are those that the policy sampled."""

from __future__ import annotations

import base64
import sys
from array import array
from dataclasses import fields
from typing import Any, Mapping, Optional

from .sample import BrokenTokens, Failure, Sample, Segment, Span, Turn


def sample_of(
    body: Mapping[str, Any], group: str, *, index: Optional[int] = None, lines: str = "main", needs_tokens: bool = True
) -> Sample:
    """
    Returns the sample in an answer of ``/v1/rollouts/ID/sample``. A sample whose tokens cannot be trained on has no reward: missing tokens
    if ``needs_tokens``, wrong lengths, and with ``lines="main"`` prompts that do not continue the tokens before them.
    """
    result = body["result"]
    facts: dict[str, Any] = {
        "group": group,
        "index": result["rollout_index"] if index is None else index,
        "rollout_id": result["rollout_id"],
        "instance_id": result["instance_id"],
        "reward": result["reward"] if result["outcome"] == "judged" else None,
        "parts": result.get("reward_parts") or {},
        "exit_status": result["exit_status"] or "",
        "truncated": body["truncated"],
        "failure": failure_of(result),
        "seconds": seconds_of(result),
        "result": result,
    }
    try:
        segments = [_segment_of(one) for one in body["segments"]]
    except BrokenTokens as error:
        return _lost(facts, "broken_tokens", str(error))
    if not segments:
        return _lost(facts, "no_tokens", str(body["missing"])) if needs_tokens or facts["failure"] else Sample((), (), **facts)
    main, *others = segments
    if lines == "main" and others:
        why = f"{len(others)} of the prompts do not continue the tokens before them; use token_mode='token-in'"
        return _lost(facts, "not_contiguous", why)
    tokens = {one.name: getattr(main, one.name) for one in fields(Segment)}
    return Sample(**tokens, **facts, segments=tuple(others) if lines == "all" else ())


def _lost(facts: Mapping[str, Any], cls: str, message: str) -> Sample:
    return Sample.failed(**{**facts, "failure": facts["failure"] or Failure("client", cls, message)})


def failure_of(result: Mapping[str, Any]) -> Optional[Failure]:
    """Returns why the farm did not judge a rollout; None if it has a reward."""
    failure = result.get("failure")
    if failure:
        return Failure(str(failure["stage"]), str(failure["class"]), str(failure["message"]))
    if result["outcome"] == "cancelled":
        return Failure("cancelled", str(result["reward_row"]), "the rollout was cancelled")
    if result["reward"] is None:
        return Failure("reward", str(result["reward_row"]), f"row {result['reward_row']} of the reward table gives no reward")
    return None


def seconds_of(result: Mapping[str, Any]) -> dict[str, float]:
    """Returns the seconds of a rollout by activity."""
    seconds = result["seconds"]
    return {"policy": seconds["model"], "tools": seconds["command"], "grading": seconds["evaluation"]}


def _segment_of(body: Mapping[str, Any]) -> Segment:
    log_probs = _numbers(body["log_probs"], "f")
    turns = []
    at = 0
    # Turns and spans share positions, because a step has some 100,000 of them.
    known: dict[int, int] = {}
    for start, stop, finish_reason, version in body["turns"]:
        span = known.setdefault(start, start), known.setdefault(stop, stop)
        turns.append(Turn(*span, log_probs[at : at + stop - start], _shared(version), _shared(finish_reason)))
        at += stop - start
    if at != len(log_probs):
        raise BrokenTokens(f"{at} sampled tokens and {len(log_probs)} log-probabilities")
    return Segment(
        _numbers(body["prompt_ids"], "i"),
        _numbers(body["response_ids"], "i"),
        tuple(turns),
        tuple(Span(_shared(name), known.setdefault(start, start), known.setdefault(stop, stop)) for name, start, stop in body["spans"]),
        line=body["line"],
        kind=body["kind"],
        weight=body["weight"],
        routed_experts=tuple(body.get("routed_experts") or ()),
    )


def _shared(text: Any) -> Any:
    """Returns a text that all samples share: a step has many turns, and few versions."""
    return sys.intern(text) if isinstance(text, str) else text


def _numbers(text: str, typecode: str) -> "array[Any]":
    numbers = array(typecode, base64.b64decode(text))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
