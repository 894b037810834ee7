import math
import pickle
import sys
import unittest
from array import array

from swefarm import UNJUDGED, BrokenTokens, Failure, Group, Sample, Segment, Span, Turn, judged_advantages


def sample(**facts):
    """Returns a sample: a prompt of 2 tokens, a turn of 2, 1 told token, a turn of 1."""
    turns = (Turn(0, 2, [-0.5, -0.25], "v1", "stop"), Turn(3, 4, [-1.0], "v2", "length"))
    tokens = {"prompt_ids": [1, 2], "response_ids": [3, 4, 5, 6], "turns": turns, "spans": (Span("v1", 0, 2), Span("v2", 3, 4))}
    return Sample(**{**tokens, "group": "g", "reward": 1.0, **facts})


class SampleTest(unittest.TestCase):
    def test_mask_and_log_probs_are_made_from_the_turns(self):
        whole = sample()
        self.assertEqual(list(whole.mask), [1, 1, 0, 1])
        self.assertEqual(list(whole.log_probs), [-0.5, -0.25, 0.0, -1.0])
        self.assertEqual((whole.sampled, whole.judged, whole.failure), (3, True, None))
        again = Sample.masked_by([1, 2], [3, 4, 5, 6], list(whole.mask), list(whole.log_probs), reward=1.0)
        self.assertEqual([(turn.start, turn.stop) for turn in again.turns], [(0, 2), (3, 4)])
        self.assertEqual(again.log_probs, whole.log_probs)

    def test_an_unjudged_sample_trains_nothing_and_says_why(self):
        lost = sample(reward=None, failure=Failure("agent", "node_lost", "n1"))
        self.assertEqual(list(lost.mask), [0, 0, 0, 0])
        self.assertEqual((lost.judged, lost.sampled), (False, 3))
        self.assertEqual(sample(reward=None).failure.cls, "unjudged")
        empty = Sample.failed(Failure("client", "farm_away", "gone"), group="g", index=3)
        self.assertEqual((empty.group, empty.index, len(empty.mask), empty.judged), ("g", 3, 0, False))

    def test_contradictory_fields_raise_at_construction(self):
        broken = {
            "turn 1: 2 tokens and 1 log": {"turns": [Turn(0, 2, [-1.0])]},
            "turn 1: a log-probability is no number": {"turns": [Turn(0, 1, [math.nan])]},
            "turn 1: a log-probability is no": {"turns": [Turn(0, 2, [math.inf, -math.inf])]},
            "turn 2: .*behind 2 of 4": {"turns": [Turn(0, 2, [-1.0, -1.0]), Turn(1, 3, [-1.0, -1.0])]},
            "span 1: .*of 4 tokens": {"spans": [Span("v", 0, 5)]},
        }
        for message, fields in broken.items():
            with self.assertRaisesRegex(BrokenTokens, message):
                sample(**fields)
        with self.assertRaisesRegex(ValueError, "reward: expected a number"):
            sample(reward=math.inf)
        with self.assertRaisesRegex(BrokenTokens, "2 tokens, 1 of the mask"):
            Sample.masked_by([], [1, 2], [1], [0.0, 0.0])

    def test_fit_cuts_whole_turns_and_removes_the_reward(self):
        whole = sample()
        self.assertIs(whole.fit(2, 4), whole)
        masked = whole.fit(2, 3)
        self.assertEqual((list(masked.response_ids), masked.cut, masked.reward), ([3, 4], True, None))
        self.assertEqual((masked.failure.cls, list(masked.mask)), ("overlong", [0, 0]))
        kept = whole.fit(2, 3, "keep")
        self.assertEqual((list(kept.mask), kept.reward, kept.spans), ([1, 1], 1.0, (Span("v1", 0, 2),)))
        self.assertIsNone(whole.fit(2, 3, "drop"))
        # Neither a prompt nor a first turn that is too long can be trained on.
        for lengths, response in (((1, 4), [3, 4, 5, 6]), ((2, 1), [3])):
            short = whole.fit(*lengths, "keep")
            self.assertEqual((short.judged, list(short.response_ids), short.cut), (False, response, True))
        with self.assertRaisesRegex(ValueError, "overlong: expected one of mask, drop, keep"):
            whole.fit(1, 1, "clip")

    def test_fit_masks_what_the_farm_truncated(self):
        ended = sample(truncated=True)
        self.assertEqual((ended.fit(9, 9).judged, ended.fit(9, 9).cut, ended.fit(9, 9, "drop")), (False, False, None))
        self.assertEqual(ended.fit(9, 9, "keep").reward, 1.0)

    def test_a_sample_survives_pickling_and_the_buffer_protocol(self):
        whole = sample(segments=(Segment([1], [2], (Turn(0, 1, [-1.0]),), line="L2", kind="subagent", weight=0.5),))
        self.assertEqual(pickle.loads(pickle.dumps(whole)), whole)
        self.assertEqual(memoryview(whole.response_ids).format, "i")
        self.assertIsInstance(whole.prompt_ids, array)

    def test_512_rollouts_of_60000_tokens_fit_into_200_megabytes(self):
        turns = tuple(Turn(at, at + 333, array("f", [-0.5]) * 333, "v", "stop") for at in range(0, 57_000, 1000))
        one = Sample(array("i", [7]) * 3000, array("i", [7]) * 57_000, turns, reward=0.0)
        size = sum(sys.getsizeof(turn) + sys.getsizeof(turn.log_probs) for turn in one.turns)
        size += sys.getsizeof(one.prompt_ids) + sys.getsizeof(one.response_ids)
        self.assertLess(size * 512, 200e6)


class AdvantageTest(unittest.TestCase):
    def test_unjudged_samples_change_no_mean_and_a_lone_one_has_no_advantage(self):
        def group(name, *rewards):
            return [sample(group=name, reward=reward) for reward in rewards]

        values = judged_advantages([*group("a", 1.0, None, 0.0, 1.0), *group("b", 1.0, None), *group("c", None)])
        self.assertEqual(values[:4], [judged_advantages(group("a", 1.0, 0.0, 1.0))[0], 0.0, values[2], values[0]])
        self.assertAlmostEqual(values[0], (1 / 3) / (math.sqrt(1 / 3) + 1e-6))
        self.assertEqual(values[4:], [0.0, 0.0, 0.0])
        self.assertEqual(judged_advantages(group("a", 1.0, 0.0), std=False), [0.5, -0.5])
        self.assertEqual(judged_advantages(group("a", 1.0, 1.0)), [0.0, 0.0])
        self.assertEqual(1.0 + UNJUDGED, 1.0)

    def test_a_group_lists_its_judged_samples(self):
        group = Group("r/i", "i", "mixed", (sample(), sample(reward=0.0), sample(reward=None)))
        self.assertEqual(([one.reward for one in group.judged], group.mixed), ([1.0, 0.0], True))


if __name__ == "__main__":
    unittest.main()
