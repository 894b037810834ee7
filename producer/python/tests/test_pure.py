import asyncio
import math
import unittest

from swefarm_verl.baseline import UNJUDGED, group_advantages, is_judged
from swefarm_verl.dryrun import check_structure, find_patch, open_dry_session
from swefarm_verl.session import SessionOver
from swefarm_verl.trajectory import BrokenTokens, is_masked, other_lines, sequence_of


def answer(*turns):
    names = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
    return {"response": {"output": [{"type": "message"}, *(dict(zip(names, turn)) for turn in turns)]}}


FIRST = ([1, 2], [3, 4], [-0.1, -0.2])
SECOND = ([1, 2, 3, 4, 5], [6], [-0.3])


class TrajectoryTest(unittest.TestCase):
    def test_told_tokens_are_masked(self):
        sequence = sequence_of(answer(FIRST, SECOND), 10, 10)
        self.assertEqual(sequence.prompt_ids, [1, 2])
        self.assertEqual(sequence.response_ids, [3, 4, 5, 6])
        self.assertEqual(sequence.mask, [1, 1, 0, 1])
        self.assertEqual(sequence.log_probs, [-0.1, -0.2, 0.0, -0.3])
        self.assertEqual((sequence.turns, sequence.cut_turns), (2, 0))

    def test_what_does_not_fit_goes_by_whole_turns(self):
        sequence = sequence_of(answer(FIRST, SECOND), 10, 3)
        self.assertEqual((sequence.response_ids, sequence.turns, sequence.cut_turns), ([3, 4], 1, 1))

    def test_a_line_masks_the_history_that_it_continues(self):
        whole = answer(FIRST, SECOND)
        fork = {"line": "L2", "line_kind": "subagent", "output": answer(([1, 2, 3, 4, 9], [7], [-0.4]))["response"]["output"]}
        masked = {"line": "L3", "line_kind": "side", "masked": "side"}
        ((line,), left_out) = other_lines({**whole, "lines": [fork, masked]}, 2, 10)
        self.assertEqual(left_out, [])
        self.assertEqual((line.id, line.kind), ("L2", "subagent"))
        self.assertEqual(line.sequence.prompt_ids, [1, 2])
        self.assertEqual(line.sequence.response_ids, [3, 4, 9, 7])
        self.assertEqual(line.sequence.mask, [0, 0, 0, 1])
        self.assertEqual(other_lines(whole, 2, 10), ([], []))
        self.assertEqual(other_lines({"lines": [fork]}, 2, 3)[1], ["L2: the first turn is longer than the trainer takes"])

    def test_broken_tokens_are_named(self):
        broken = {
            "turn 2: its prompt does not begin": answer(FIRST, ([1, 9, 3, 4], [6], [-0.3])),
            "turn 1: 2 tokens and 1 log": answer(([1], [2, 3], [-0.1])),
            "turn 1: a log-probability is no number": answer(([1], [2], [math.nan])),
            "no turn with token ids": answer(),
            "the prompt has 11": answer((list(range(11)), [1], [-0.1])),
            "the first turn is longer": answer(([1], list(range(11)), [-0.1] * 11)),
        }
        for message, given in broken.items():
            with self.assertRaisesRegex(BrokenTokens, message):
                sequence_of(given, 10, 10)

    def test_every_way_of_saying_that_it_is_not_judged(self):
        self.assertTrue(is_masked({"instance_config": {"mask_sample": True}}))
        self.assertTrue(is_masked({"_ng_failure_class": "sandbox"}))
        self.assertFalse(is_masked({"instance_config": {"mask_sample": False}}))


class BaselineTest(unittest.TestCase):
    def test_unjudged_samples_move_nobody(self):
        alone = group_advantages([1, 0, 1], [True] * 3, "aaa")
        among = group_advantages([1, UNJUDGED, 0, UNJUDGED, 1], [True, False, True, False, True], "aaaaa")
        self.assertEqual([among[0], among[2], among[4]], alone)
        self.assertEqual([among[1], among[3]], [0.0, 0.0])
        deviation = (1 / 3) ** 0.5
        self.assertAlmostEqual(alone[0], (1 / 3) / (deviation + 1e-6))

    def test_groups_are_apart_and_a_lone_survivor_learns_nothing(self):
        values = group_advantages([1, 0, 1, 1], [True, True, True, False], ["a", "a", "b", "b"], by_deviation=False)
        self.assertEqual(values, [0.5, -0.5, 0.0, 0.0])
        self.assertEqual(group_advantages([1], [True], ["only"], by_deviation=False), [1.0])

    def test_the_mark_is_a_number_that_float32_keeps(self):
        self.assertFalse(is_judged(UNJUDGED, 5))
        self.assertFalse(is_judged(1.0, 0))
        self.assertTrue(is_judged(0.0, 5))
        self.assertEqual(1.0 + UNJUDGED, 1.0)
        self.assertGreater(UNJUDGED, 2.0**-126)


class DryRunTest(unittest.TestCase):
    def test_commands_run_here_and_end_with_the_submission(self):
        async def drive():
            session = open_dry_session("r")
            self.assertIn("<returncode>3</returncode>", (await session.run("echo a > f; exit 3"))["observation"])
            self.assertIn("a\n", (await session.run("cat f"))["observation"])
            self.assertIsNone((await session.run("sleep 60", timeout_s=0.1))["exit_code"])
            await session.submit()
            with self.assertRaises(SessionOver):
                await session.run("ls")

        asyncio.run(drive())

    def test_patches_are_found_and_counted(self):
        patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
        self.assertEqual(find_patch(f"so\n```diff\n{patch}```\n"), patch)
        self.assertEqual(find_patch(f"<patch>\nold\n</patch> no: <patch>\n{patch}</patch>"), patch)
        self.assertIsNone(find_patch("nothing"))
        self.assertTrue(check_structure(patch).sound)
        self.assertEqual(check_structure(patch).files, 1)
        for bad in (None, "text\n", patch[:-3], patch.replace("2 @@", "1 @@"), "--- a/x\n+++ b/x\n"):
            self.assertFalse(check_structure(bad).sound, bad)


if __name__ == "__main__":
    unittest.main()
