"""
The contract of every adapter for a trainer: under each fault, no sample is trained on twice, and no unjudged sample is in a mean or a
loss. A function drives each adapter: the function plays one batch and returns the input of the trainer's loss.
"""

from __future__ import annotations

import unittest
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

from scriptedfarm import FAULTS, INSTANCES, MARKS, ScriptedFarm

N = 4


@dataclass(frozen=True)
class Trained:
    """A sequence of a batch with mask and advantage, and the policy versions that the trainer receives, if any."""

    response: Sequence[int]
    mask: Sequence[int]
    log_probs: Sequence[float]
    advantage: float
    versions: Optional[tuple[int, int]] = None

    @property
    def tokens(self) -> list[int]:
        return [int(token) for token, sampled in zip(self.response, self.mask) if sampled]


#: Plays N rollouts of each of the farm's rows as the farm's step of the trainer, in the run ``name``.
Drive = Callable[[Any, str], Sequence[Trained]]


def check(test: unittest.TestCase, drive: Drive, *, resumes: bool = True, std: bool = True) -> None:
    """
    Plays every fault. ``resumes``: a second process with the same run and step gets the rollouts of the first, else new rollouts.
    ``std``: the trainer divides the distance to the mean by the deviation.
    """
    for fault in FAULTS:
        with test.subTest(fault), ScriptedFarm(fault) as farm:
            trained = drive(farm, "run-1")
            require_each_once(test, farm, trained, std)
            if fault == "the trainer is killed and resumed":
                before, first = len(farm.rollouts), {one.tokens[0] for one in trained}
                farm.port += 1
                again = drive(farm, "run-1")
                require_each_once(test, farm, again, std)
                test.assertEqual(len(farm.rollouts), before if resumes else 2 * before)
                test.assertEqual(first & {one.tokens[0] for one in again}, first if resumes else set())


def require_each_once(test: unittest.TestCase, farm: Any, trained: Sequence[Trained], std: bool) -> None:
    """
    Checks that ``trained`` has each judged rollout of the farm's last batch once, with its exact tokens, log-probabilities, advantage and
    versions.
    """
    seen: list[int] = []
    known = farm.by_mark
    for one in trained:
        test.assertEqual(len(one.response), len(one.mask))
        test.assertEqual(len(one.response), len(one.log_probs))
        if not one.tokens:
            test.assertEqual(one.advantage, 0.0, "no advantage without a trained token")
            continue
        played = known[one.tokens[0]]
        seen.append(played.mark)
        test.assertIsNotNone(played.reward, "an unjudged sample has no trained token")
        test.assertEqual(one.tokens, played.sampled, "the tokens as they were sampled")
        start = list(one.mask).index(1)
        # Some trainers drop the prompt, or its first token, because they shift the targets by one.
        test.assertEqual(list(one.response[:start]), list(played.prompt[len(played.prompt) - start :]), "the end of the prompt, once")
        test.assertEqual(list(one.response[start : start + len(played.tokens)]), played.tokens, "the tokens between the turns")
        given = [value for value, sampled in zip(one.log_probs, one.mask) if sampled]
        test.assertEqual([round(float(value), 6) for value in given], played.log_probs)
        test.assertAlmostEqual(one.advantage, _expected(played, std), delta=1e-3, msg="trainers add an epsilon")
        if one.versions is not None:
            test.assertEqual(one.versions, played.versions)
    test.assertEqual(len(seen), len(set(seen)), "no sample twice")
    latest = sorted(known)[-len(INSTANCES) * N :]
    judged = [mark for mark in (latest if set(seen) & set(latest) else sorted(known)) if known[mark].reward is not None]
    # A trainer may omit the only judged sample of a group, because this sample has no advantage.
    test.assertEqual(sorted(seen), [] if not seen and len(judged) <= len(INSTANCES) else judged)


def _expected(played: Any, std: bool) -> float:
    rewards = [reward for reward in played.siblings if reward is not None]
    mean = sum(rewards) / len(rewards)
    if len(rewards) < 2:
        return 0.0
    if not std:
        return float(played.reward - mean)
    deviation = (sum((reward - mean) ** 2 for reward in rewards) / (len(rewards) - 1)) ** 0.5
    return float(played.reward - mean) / deviation


__all__ = ["INSTANCES", "MARKS", "N", "Trained", "check", "require_each_once"]
