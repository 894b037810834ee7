"""GRPO advantages over the judged samples of a group, for trainers that give an estimator only scores and masks. Needs no torch."""

from __future__ import annotations

from typing import Hashable, Sequence

from ..sample import UNJUDGED


def is_judged(score: float, trained_tokens: float) -> bool:
    """Returns whether the sample has trained tokens and a verdict as its score."""
    return trained_tokens > 0 and abs(score) != UNJUDGED


def group_advantages(
    scores: Sequence[float],
    judged: Sequence[bool],
    groups: Sequence[Hashable],
    epsilon: float = 1e-6,
    by_deviation: bool = True,
) -> list[float]:
    """
    Returns GRPO's outcome advantages, computed over the judged samples of each group. Unjudged samples get 0. A judged sample that is
    alone in its group gets 0 too: a trainer that receives no row for an unjudged sample cannot distinguish this group from a group of one
    rollout.
    """
    members: dict[Hashable, list[float]] = {}
    for score, counts, group in zip(scores, judged, groups):
        if counts:
            members.setdefault(group, []).append(score)
    scales = {}
    for group, values in members.items():
        mean = sum(values) / len(values)
        deviation = (sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5
        scales[group] = (mean, deviation + epsilon if by_deviation else 1.0)
    return [
        (score - scales[group][0]) / scales[group][1] if counts else 0.0 for score, counts, group in zip(scores, judged, groups)
    ]
