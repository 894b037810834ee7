import asyncio
import os
import threading
import time
import unittest
from unittest import mock

from fakefarm import FakeFarm

from swefarm import UNJUDGED
from swefarm.farm import Farm, FarmBusy, FarmError, FarmRefusal, HoldExpired
from swefarm.trainers.verl.reward import compute_score
from swefarm.trainers.verl.session import SessionOver, grade, hearts, open_session, verdict_of

INSTANCE = '{"instance_id": "a__b-1"}'
JUDGED = {"judged": True, "reward": 1, "resolved": True, "failure": None, "reward_row": "judged", "report": None}
LOST = {"judged": False, "reward": None, "resolved": None, "failure": {"class": "session_lost"}, "reward_row": "failed"}


def settings(farm: FakeFarm) -> dict:
    return {"farm_url": farm.url, "patience_s": 5}


class FarmTest(unittest.TestCase):
    def test_a_dropped_or_refused_connection_is_retried(self):
        answers = [None, (503, {}), (200, {"ok": 1})]
        with FakeFarm(lambda *_: answers.pop(0)) as fake:
            self.assertEqual(Farm.of(settings(fake)).call("POST", "/x", {}), {"ok": 1})
            self.assertEqual(len(fake.asked), 3)

    def test_a_refusal_is_not_retried_and_names_the_field(self):
        refusal = {"error": {"code": "bad_request", "message": "seq: no", "field": "seq"}}
        with FakeFarm(lambda *_: (400, refusal)) as fake:
            with self.assertRaises(FarmRefusal) as caught:
                Farm.of(settings(fake)).call("POST", "/x", {})
            self.assertEqual((caught.exception.code, caught.exception.field), ("bad_request", "seq"))
            self.assertEqual(len(fake.asked), 1)

    def test_a_try_that_the_farm_serves_restarts_the_time_of_retries(self):
        # Each try that the farm serves lasts longer than ``patience_s``, so each restarts the time of retries.
        script = iter([(1.3, None), (0, (502, {})), (1.3, (504, {})), (0, None), (1.3, (200, {"reward": 1}))])

        def play(*_):
            seconds, answer = next(script)
            time.sleep(seconds)
            return answer

        with FakeFarm(play) as fake:
            farm = Farm.of({"farm_url": fake.url, "patience_s": 1})
            self.assertEqual(farm.call("POST", "/run", {"_ng_rollout_id": "verl-1"}, 60), {"reward": 1})
            self.assertEqual([body for _, _, body in fake.asked], [{"_ng_rollout_id": "verl-1"}] * 5)

    def test_many_fast_failures_do_not_extend_the_time_of_retries(self):
        with FakeFarm(lambda *_: (503, {})) as fake:
            with self.assertRaises(FarmError):
                Farm.of({"farm_url": fake.url, "patience_s": 1}).call("POST", "/run", {}, 600)
            self.assertGreater(len(fake.asked), 2)

    def test_all_tries_end_within_the_time_limit_of_the_call(self):
        def play(*_):
            time.sleep(0.6)

        with FakeFarm(play) as fake:
            began = time.monotonic()
            with self.assertRaises(FarmError):
                Farm.of({"farm_url": fake.url, "patience_s": 1}).call("POST", "/run", {}, 1.5)
            self.assertLess(len(fake.asked), 6)
            self.assertLess(time.monotonic() - began, 60)

    def test_a_rollout_past_its_deadline_is_not_retried(self):
        expired = {"error": {"code": "hold_expired", "message": "no verdict within 5 s (rollout_timeout_s)"}}
        with FakeFarm(lambda *_: (503, expired)) as fake:
            with self.assertRaisesRegex(HoldExpired, "rollout_timeout_s"):
                Farm.of(settings(fake)).call("POST", "/run", {})
            self.assertEqual(len(fake.asked), 1)

    def test_a_quota_is_not_an_outage(self):
        answers = [(429, {"error": {"code": "over_quota", "message": "wait for results"}}), (200, {"ok": 1})]
        with FakeFarm(lambda *_: answers.pop(0), {"retry-after": "0"}) as fake:
            self.assertEqual(Farm.of(settings(fake)).call("POST", "/x", {}), {"ok": 1})
        with FakeFarm(lambda *_: (429, {}), {"retry-after": "60"}) as fake:
            with self.assertRaises(FarmBusy) as caught:
                Farm.of({"farm_url": fake.url, "patience_s": 0.1}).call("POST", "/x", {})
            self.assertEqual((caught.exception.retry_after_s, len(fake.asked)), (60.0, 2))
            self.assertNotIn("swefarm serve", str(caught.exception))

    def test_a_token_is_stripped_and_errors_do_not_show_a_bad_one(self):
        self.assertEqual(Farm("http://h:1/\n", "secret\n").token, "secret")
        with self.assertRaisesRegex(ValueError, "^token: expected printable ASCII characters$"):
            Farm("http://h:1", "sec\nret")
        with mock.patch.dict(os.environ, {"MINE": "sécret"}), self.assertRaisesRegex(ValueError, "^MINE: "):
            Farm("http://h:1", token_env="MINE")

    def test_calls_to_this_machine_bypass_proxies(self):
        with FakeFarm(lambda *_: (200, {"ok": 1})) as fake, mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:9", "no_proxy": ""}):
            self.assertEqual(Farm(fake.url, patience_s=0.1).call("GET", "/x"), {"ok": 1})

    def test_retries_end_after_the_patience(self):
        with self.assertRaises(FarmError):
            Farm.of({"farm_url": "http://127.0.0.1:9", "patience_s": 0.1}).call("GET", "/x")


class SessionTest(unittest.TestCase):
    def test_a_failed_submit_returns_feedback_and_the_last_one_ends_the_session(self):
        answers = iter([{"state": "answered", "observation": "Tests failed: no"}, {"state": "ended", "end": "submitted"}])

        def script(_, path, body):
            return 200, {"session_id": "s1"} if path == "/v1/sessions" else next(answers)

        async def drive(fake):
            given = {**settings(fake), "agent": {"max_submits": 2}}
            session = await open_session("r1", given, {"instance": INSTANCE})
            self.assertEqual(await session.submit_for_feedback(), "Tests failed: no")
            self.assertIsNone(session.over)
            self.assertEqual(await session.submit_for_feedback(), "Submitted.")
            self.assertIsNotNone(session.over)

        with FakeFarm(script) as fake:
            asyncio.run(drive(fake))
            self.assertEqual(fake.asked[0][2]["agent"], {"max_submits": 2})

    def test_a_session_that_ended_earlier_is_not_a_submit(self):
        def script(_, path, body):
            return 200, {"session_id": "s1"} if path == "/v1/sessions" else {"state": "ended", "end": "time_limit"}

        async def drive(fake):
            session = await open_session("r1", settings(fake), {"instance": INSTANCE})
            with self.assertRaisesRegex(SessionOver, "time_limit"):
                await session.submit_for_feedback()

        with FakeFarm(script) as fake:
            asyncio.run(drive(fake))

    def test_commands_are_numbered_and_a_wait_is_repeated(self):
        waits = iter([True, False, False])

        def script(_, path, body):
            if path == "/v1/sessions":
                return 200, {"session_id": "s1"}
            if path.endswith("/commands"):
                if next(waits):
                    return 200, {"state": "waiting", "seq": body["seq"]}
                return 200, {"state": "answered", "observation": f"did {body['command']}"}
            return 200, {"state": "grading"}

        async def drive(fake):
            session = await open_session("r1", settings(fake), {"instance": INSTANCE})
            self.assertTrue(hearts.beats_for("s1"))
            first, second = await asyncio.gather(session.run("one"), session.run("two"))
            self.assertEqual((first["observation"], second["observation"]), ("did one", "did two"))
            await session.submit()
            with self.assertRaises(SessionOver):
                await session.run("three")
            self.assertFalse(hearts.beats_for("s1"))

        with FakeFarm(script) as fake:
            asyncio.run(drive(fake))
            opened = fake.asked[0][2]
            self.assertEqual(opened["instance"], INSTANCE)
            numbers = [body["seq"] for _, path, body in fake.asked if path.endswith("/commands")]
            self.assertEqual(numbers, [1, 1, 2])

    def test_a_repeated_request_id_opens_another_session(self):
        with FakeFarm(lambda *_: (200, {"session_id": "s2"})) as fake:
            asyncio.run(open_session("same", settings(fake), {}))
            asyncio.run(open_session("same", settings(fake), {}))
            keys = [body["request_id"] for _, path, body in fake.asked if path == "/v1/sessions"]
            self.assertEqual(len(set(keys)), 2)
        hearts.forget("s2")

    def test_heartbeats_end_when_the_farm_does_not_know_the_session(self):
        beaten = threading.Event()

        def script(_, path, body):
            if path.endswith("/heartbeat"):
                beaten.set()
                return 200, {"alive": []}
            return 200, {"session_id": "s3"}

        with FakeFarm(script) as fake:
            asyncio.run(open_session("beat", {**settings(fake), "lease_s": 0.2}, {}))
            self.assertTrue(beaten.wait(60))
            waiting = threading.Event()
            for _ in range(600):
                if not hearts.beats_for("s3"):
                    break
                waiting.wait(0.1)
            self.assertFalse(hearts.beats_for("s3"))


class GradeTest(unittest.TestCase):
    def test_the_verdict_submits_the_session_first_if_necessary(self):
        answers = [(200, {"state": "grading"}), (200, {"state": "ended", "result": JUDGED})]
        with FakeFarm(lambda *_: answers.pop(0)) as fake:
            verdict = asyncio.run(grade(Farm.of(settings(fake)), "s1", 60))
            self.assertEqual((verdict.judged, verdict.reward), (True, 1.0))
            self.assertEqual(fake.paths(), ["/v1/sessions/s1/submit"] * 2)

    def test_an_unjudged_result_has_no_reward_and_names_its_cause(self):
        verdict = verdict_of(LOST)
        self.assertEqual((verdict.judged, verdict.reward, verdict.why), (False, 0.0, "session_lost"))

    def test_without_a_farm_the_sample_is_not_judged(self):
        verdict = asyncio.run(grade(Farm.of({"farm_url": "http://127.0.0.1:9", "patience_s": 0.1}), "s", 5))
        self.assertFalse(verdict.judged)


class ScoreTest(unittest.TestCase):
    def score(self, extra, solution="", **more):
        return asyncio.run(compute_score("swefarm", solution, "", extra, **more))

    def test_the_session_of_the_trajectory_is_graded(self):
        with FakeFarm(lambda *_: (200, {"state": "ended", "result": JUDGED})) as fake:
            handle = {"session_id": "s1", "farm_url": fake.url}
            self.assertEqual(self.score({"swefarm_session": handle})["score"], 1.0)

    def test_reward_parts_are_one_text_and_named_parts_are_numbers(self):
        scored = {**JUDGED, "resolved": None, "reward": 0.75, "reward_components": {"tests": 0.25, "style": 0.5}}
        results = [scored, JUDGED, LOST]
        with FakeFarm(lambda *_: (200, {"state": "ended", "result": results.pop(0)})) as fake:
            handle = {"session_id": "s1", "farm_url": fake.url}
            with_parts, without, lost = (
                self.score({"swefarm_session": handle}, score_parts=["tests"]) for _ in range(3)
            )
        self.assertEqual(with_parts["score"], 0.75)
        self.assertEqual(with_parts["reward_components"], '{"style": 0.5, "tests": 0.25}')
        self.assertEqual([one["score/tests"] for one in (with_parts, without, lost)], [0.25, 0.0, 0.0])
        # verl reads the keys of the first sample for all samples, and ignores strings in its metrics.
        self.assertEqual(len({tuple(one) for one in (with_parts, without, lost)}), 1)
        self.assertEqual(without["reward_components"], "{}")

    def test_lost_dry_and_unknown_samples_have_a_number_and_are_not_judged(self):
        with FakeFarm(lambda *_: (200, {"state": "ended", "result": LOST})) as fake:
            url = fake.url
            for handle in (
                {"session_id": "s1", "farm_url": url},
                {"session_id": "s1", "farm_url": url, "lost": "no farm"},
                {"session_id": "dry-1"},
                {"lost": "no farm"},
            ):
                scored = self.score({"swefarm_session": handle})
                self.assertEqual((scored["score"], scored["judged"]), (UNJUDGED, 0.0), handle)

    def test_a_model_that_ran_no_command_scores_zero(self):
        scored = self.score({})
        self.assertEqual((scored["score"], scored["judged"]), (0.0, 1.0))

    def test_an_answer_that_is_a_patch_is_applied_and_graded(self):
        def script(_, path, body):
            if path == "/v1/sessions":
                return 200, {"session_id": "s9"}
            if path.endswith("/commands"):
                return 200, {"state": "answered", "observation": "", "exit_code": 0}
            return 200, {"state": "ended", "result": JUDGED}

        patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
        extra = {"prompt_style": "style-3", "tools_kwargs": {"bash": {"create_kwargs": {"instance": INSTANCE}}}}
        with FakeFarm(script) as fake:
            scored = self.score(extra, f"Here:\n<patch>\n{patch}</patch>", farm_url=fake.url)
            self.assertEqual((scored["score"], scored["structure"]), (1.0, 1.0))
        self.assertEqual(self.score(extra, "I cannot")["why"], "no patch")


if __name__ == "__main__":
    unittest.main()
