"""GRPO advantages over the judged samples of a group, without torch."""

from __future__ import annotations

from collections import defaultdict
from typing import Hashable, Sequence

#: Score that marks an unjudged sample, because verl gives an estimator only scores and masks. It is exact in float32
#: and so small that it counts as zero in sums and means.
UNJUDGED = 2.0**-100


def is_judged(score: float, trained_tokens: int) -> bool:
    """Returns whether the sample has trained tokens and a verdict as its score."""
    return trained_tokens > 0 and score != UNJUDGED


def group_advantages(
    scores: Sequence[float],
    judged: Sequence[bool],
    groups: Sequence[Hashable],
    epsilon: float = 1e-6,
    by_deviation: bool = True,
) -> list[float]:
    """
    Returns GRPO's outcome advantages, computed over the judged samples of each group. Unjudged samples get 0, and so does
    a judged sample in a group of otherwise unjudged samples. A group of one sample follows verl's rule (mean 0, deviation 1).
    """
    members: dict[Hashable, list[float]] = defaultdict(list)
    sizes: dict[Hashable, int] = defaultdict(int)
    for score, counts, group in zip(scores, judged, groups):
        sizes[group] += 1
        if counts:
            members[group].append(score)
    means: dict[Hashable, float] = {}
    deviations: dict[Hashable, float] = {}
    for group, values in members.items():
        if len(values) == 1:
            means[group] = 0.0 if sizes[group] == 1 else values[0]
            deviations[group] = 1.0
            continue
        mean = sum(values) / len(values)
        means[group] = mean
        deviations[group] = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return [
        ((score - means[group]) / (deviations[group] + epsilon) if by_deviation else score - means[group]) if counts else 0.0
        for score, counts, group in zip(scores, judged, groups)
    ]
