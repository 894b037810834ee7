import asyncio
import unittest

from swefarm import UNJUDGED, Sample, Segment, Turn
from swefarm.trainers.baseline import group_advantages, is_judged
from swefarm.trainers.batch import sampling_of, turns_of
from swefarm.trainers.verl.dryrun import check_structure, find_patch, open_dry_session
from swefarm.trainers.verl.row import spilled
from swefarm.trainers.verl.session import SessionOver


class LineTest(unittest.TestCase):
    LINE = Segment((1, 2, 3, 4, 9), (7, 8, 6), (Turn(0, 1, [-0.4]), Turn(2, 3, [-0.2])), line="L2", kind="subagent")

    def test_a_line_masks_the_history_that_it_continues(self):
        line = spilled(self.LINE, 2, 10)
        self.assertEqual((line.line, line.kind), ("L2", "subagent"))
        self.assertEqual((list(line.prompt_ids), list(line.response_ids)), ([1, 2], [3, 4, 9, 7, 8, 6]))
        self.assertEqual(list(line.mask), [0, 0, 0, 1, 0, 1])

    def test_a_sequence_that_is_too_long_loses_whole_turns(self):
        self.assertEqual(list(spilled(self.LINE, 2, 5).response_ids), [3, 4, 9, 7])
        self.assertIsNone(spilled(self.LINE, 2, 3))


class BatchTest(unittest.TestCase):
    def test_settings_without_a_value_are_not_sent(self):
        self.assertEqual(sampling_of({"temperature": 0.0, "top_k": 0, "stop": [], "seed": None, "n": 1}), {"temperature": 0.0, "top_k": -1})

    def test_the_prompt_of_a_turn_has_all_tokens_before_it(self):
        sample = Sample((1, 2), (7, 3, 8, 6), (Turn(0, 1, [-0.5]), Turn(2, 3, [-0.25])), reward=1.0)
        found = [(prompt, ids, log_probs) for prompt, ids, log_probs, _ in turns_of(sample)]
        self.assertEqual(found, [([1, 2], [7], [-0.5]), ([1, 2, 7, 3], [8], [-0.25])])


class BaselineTest(unittest.TestCase):
    def test_unjudged_samples_do_not_change_the_baseline(self):
        alone = group_advantages([1, 0, 1], [True] * 3, "aaa")
        among = group_advantages([1, UNJUDGED, 0, UNJUDGED, 1], [True, False, True, False, True], "aaaaa")
        self.assertEqual([among[0], among[2], among[4]], alone)
        self.assertEqual([among[1], among[3]], [0.0, 0.0])
        deviation = (1 / 3) ** 0.5
        self.assertAlmostEqual(alone[0], (1 / 3) / (deviation + 1e-6))

    def test_groups_are_separate_and_a_lone_judged_sample_has_no_advantage(self):
        values = group_advantages([1, 0, 1, 1], [True, True, True, False], ["a", "a", "b", "b"], by_deviation=False)
        self.assertEqual(values, [0.5, -0.5, 0.0, 0.0])
        # A trainer without a row for an unjudged sample presents the lone judged one as a group of one.
        self.assertEqual(group_advantages([1], [True], ["only"], by_deviation=False), [0.0])

    def test_the_score_of_unjudged_samples_is_exact_in_float32(self):
        self.assertFalse(is_judged(UNJUDGED, 5))
        self.assertFalse(is_judged(1.0, 0))
        self.assertTrue(is_judged(0.0, 5))
        self.assertEqual(1.0 + UNJUDGED, 1.0)
        self.assertGreater(UNJUDGED, 2.0**-126)


class DryRunTest(unittest.TestCase):
    def test_commands_of_a_dry_run_end_with_the_submission(self):
        async def drive():
            session = open_dry_session("r")
            self.assertIn("<returncode>3</returncode>", (await session.run("echo a > f; exit 3"))["observation"])
            self.assertIn("a\n", (await session.run("cat f"))["observation"])
            self.assertIsNone((await session.run("sleep 60", timeout_s=0.1))["exit_code"])
            await session.submit()
            with self.assertRaises(SessionOver):
                await session.run("ls")

        asyncio.run(drive())

    def test_patches_in_answers_are_found_and_counted(self):
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
