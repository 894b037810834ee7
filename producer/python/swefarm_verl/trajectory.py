"""Converts the farm's answer to /run to verl's token sequences, each of which ends after a whole turn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Optional


class BrokenTokens(Exception):
    """The answer cannot be trained on. The message names the turn and the violated rule."""


@dataclass(frozen=True)
class Sequence:
    """``mask`` is 1 for sampled tokens, else 0. ``response_ids``, ``mask`` and ``log_probs`` have equal lengths."""

    prompt_ids: list[int]
    response_ids: list[int]
    mask: list[int]
    log_probs: list[float]
    turns: int
    #: Number of turns that did not fit into the trainer's limits.
    cut_turns: int


@dataclass(frozen=True)
class Line:
    """One line of the agent: requests each of which continues the one before. ``id`` is unique in the rollout."""

    id: str
    kind: str
    sequence: Sequence


def sequence_of(answer: Mapping[str, Any], prompt_length: int, response_length: int) -> Sequence:
    """
    Joins the output items of the main line that have token ids. The prompt of each turn must begin with all earlier tokens.
    Raises BrokenTokens for a wrong or too long prompt, unequal lengths, log-probabilities that are not finite, and if nothing
    can be trained on.
    """
    return _joined(answer["response"]["output"], prompt_length, response_length, False)


def other_lines(answer: Mapping[str, Any], prompt_length: int, response_length: int) -> tuple[list[Line], list[str]]:
    """
    Returns the trained lines beside the main line, and why lines are left out. Tokens of a prompt after ``prompt_length`` are
    masked tokens of the response, because a line may begin with the history of another line.
    """
    lines: list[Line] = []
    left_out: list[str] = []
    for found in answer.get("lines") or []:
        if found.get("output") is None:
            continue
        try:
            sequence = _joined(found["output"], prompt_length, response_length, True)
            lines.append(Line(str(found["line"]), str(found["line_kind"]), sequence))
        except BrokenTokens as error:
            left_out.append(f"{found['line']}: {error}")
    return lines, left_out


def _joined(output: Iterable[Mapping[str, Any]], prompt_length: int, response_length: int, spills: bool) -> Sequence:
    prompt: Optional[list[int]] = None
    ids: list[int] = []
    mask: list[int] = []
    log_probs: list[float] = []
    turns = cut = 0
    for item in output:
        generated = item.get("generation_token_ids")
        if not generated:
            continue
        number = turns + cut + 1
        sampled = item.get("generation_log_probs") or []
        if len(sampled) != len(generated):
            raise BrokenTokens(f"turn {number}: {len(generated)} tokens and {len(sampled)} log-probabilities")
        if not all(math.isfinite(value) for value in sampled):
            raise BrokenTokens(f"turn {number}: a log-probability is no number")
        prompted = item.get("prompt_token_ids") or []
        if prompt is None:
            if len(prompted) > prompt_length and not spills:
                raise BrokenTokens(f"the prompt has {len(prompted)} tokens, the trainer takes {prompt_length}")
            prompt = list(prompted[:prompt_length])
        observed: list[int] = []
        if cut == 0:
            before = prompt + ids
            if prompted[: len(before)] != before:
                raise BrokenTokens(f"turn {number}: its prompt does not begin with all tokens before it")
            observed = prompted[len(before) :]
        if cut or len(ids) + len(observed) + len(generated) > response_length:
            cut += 1
            continue
        ids += observed + generated
        mask += [0] * len(observed) + [1] * len(generated)
        log_probs += [0.0] * len(observed) + sampled
        turns += 1
    if prompt is None or turns == 0:
        raise BrokenTokens("no turn with token ids" if prompt is None else "the first turn is longer than the trainer takes")
    return Sequence(prompt, ids, mask, log_probs, turns, cut)


def is_masked(answer: Mapping[str, Any]) -> bool:
    """Returns whether the farm excludes this sample from training."""
    config = answer.get("instance_config") or {}
    return bool(config.get("mask_sample") or answer.get("mask_sample") or answer.get("_ng_failure_class"))
