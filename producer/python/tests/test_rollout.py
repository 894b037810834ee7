import asyncio
import threading
import time
import unittest

from answers import LOST, body, packed, result, run_of, segment
from fakefarm import FakeFarm
from swefarm import FarmRefusal, Sampling


class Rollouts:
    """Answers POST /v1/rollouts with ``answers`` in order, and repeats the last one."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self, method, path, asked):
        if path.endswith("/cancel"):
            return 200, {"cancelled": []}
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


WAITING = 200, {"status": "waiting", "rollout_id": "r1.a.0"}
DONE = 200, {"status": "done", "rollout_id": "r1.a.0", **body()}


class RolloutTest(unittest.TestCase):
    def test_all_tries_have_one_request_id_until_the_sample_arrives(self):
        with FakeFarm(Rollouts(None, (503, {}), WAITING, WAITING, DONE)) as fake:
            run = run_of(fake, max_response_tokens=99, sampling=Sampling(temperature=0.5), settings={"agent": {"step_limit": 7}})
            sample = run.play({"instance_id": "a"}, group="g", index=3, request_id="7", version="v1", extra_body={"cache_salt": "s"})
        sent = [asked for _, _, asked in fake.asked]
        self.assertEqual({request["request_id"] for request in sent}, {"exp/7"})
        self.assertEqual([request["wait_seconds"] for request in sent], [0, 0, 0, 30.0, 30.0])
        policy = sent[0]["run"]["policy"]
        self.assertEqual((policy["urls"], policy["version"], policy["extra_body"]), (["http://p/v1"], "v1", {"cache_salt": "s"}))
        self.assertEqual((policy["sampling"]["temperature"], policy["sampling"]["top_k"], policy["require_tokens"]), (0.5, -1, True))
        self.assertEqual(sent[0]["run"]["agent"], {"max_sequence_tokens": 99, "step_limit": 7})
        self.assertEqual((sample.group, sample.index, sample.reward, sample.exit_status), ("g", 3, 1.0, "submitted"))
        self.assertEqual((list(sample.response_ids), list(sample.mask)), ([3, 4, 5, 6], [1, 1, 0, 1]))
        self.assertEqual([(turn.version, turn.finish_reason, list(turn.log_probs)) for turn in sample.turns], [("v1", "stop", [-0.5, -0.25]), (None, "length", [-1.0])])
        self.assertEqual(sample.seconds, {"policy": 3.0, "tools": 2.0, "grading": 1.0})

    def test_a_rollout_that_is_not_judged_is_a_sample_without_reward(self):
        broken = segment(log_probs=packed("f", -1.0))
        for answer, stage, code in (
            (body(result(reward=None, **LOST), segments=[]), "agent", "node_lost"),
            (body(result(reward=None, outcome="cancelled", reward_row="orphan"), segments=[]), "cancelled", "orphan"),
            (body(result(reward=None, reward_row="policy_time")), "reward", "policy_time"),
            (body(segments=[], missing="no trajectory is stored"), "client", "no_tokens"),
            (body(segments=[segment(), segment()]), "client", "not_contiguous"),
            (body(segments=[broken]), "client", "broken_tokens"),
        ):
            with FakeFarm(Rollouts((200, {"status": "done", "rollout_id": "r", **answer}))) as fake:
                sample = run_of(fake).play("a")
            self.assertEqual((sample.reward, sample.failure.stage, sample.failure.cls), (None, stage, code))
            self.assertNotIn(1, sample.mask)

    def test_other_lines_are_segments_with_weights_on_request(self):
        other = segment(line="L2", kind="subagent", weight=0.5)
        answer = 200, {"status": "done", "rollout_id": "r", **body(segments=[segment(weight=0.5), other])}
        with FakeFarm(Rollouts(answer)) as fake:
            sample = run_of(fake, lines="all").play("a")
            self.assertEqual(fake.asked[0][2]["lines"], "all")
        self.assertEqual((sample.weight, [(one.line, one.kind, one.weight) for one in sample.segments]), (0.5, [("L2", "subagent", 0.5)]))
        self.assertEqual((sample.group, sample.fit(1, 1).segments), ("a", ()))

    def test_an_unreachable_farm_fails_the_sample_and_a_wrong_request_raises(self):
        with FakeFarm(Rollouts((503, {}))) as fake:
            sample = run_of(fake).play({"instance_id": "a"}, group="g", index=1)
            self.assertEqual((sample.failure.cls, sample.group, sample.index, sample.instance_id), ("farm_away", "g", 1, "a"))
        for status in (401, 403, 404, 422):
            refusal = {"error": {"code": "bad_row", "message": "instance.x: no", "field": "instance.x"}}
            with FakeFarm(Rollouts((status, refusal))) as fake, self.assertRaises(FarmRefusal) as caught:
                run_of(fake).play("a")
            self.assertEqual((caught.exception.status, caught.exception.field), (status, "instance.x"))
        self.assertIn("gateway_callers", str(FarmRefusal(403, "x", "no", None)))

    def test_a_rollout_over_its_time_is_cancelled(self):
        with FakeFarm(Rollouts(WAITING)) as fake:
            sample = run_of(fake).play("a", timeout_s=0.05)
        self.assertEqual(sample.failure.cls, "timeout")
        self.assertEqual(fake.asked[-1], ("POST", "/v1/runs/r1/cancel", {"rollouts": ["r1.a.0"]}))

    def test_a_cancelled_coroutine_cancels_its_rollout(self):
        begun, held = threading.Event(), threading.Event()

        def script(method, path, asked):
            if path.endswith("/cancel"):
                held.set()
                return 200, {}
            if asked["wait_seconds"] == 0:
                return WAITING
            begun.set()
            held.wait(30)
            return WAITING

        async def drive(run):
            task = asyncio.ensure_future(run.rollout("a"))
            while not begun.is_set():
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            while not held.is_set():
                await asyncio.sleep(0.01)

        with FakeFarm(script) as fake:
            asyncio.run(drive(run_of(fake)))
            self.assertIn(("POST", "/v1/runs/r1/cancel", {"rollouts": ["r1.a.0"]}), fake.asked)

    def drive_cancelled(self, script):
        """Cancels a rollout after its first request. Returns the requests when the client has ended."""

        async def drive():
            task = asyncio.ensure_future(run_of(fake, patience_s=3).rollout("a"))
            while not fake.asked:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        with FakeFarm(script) as fake:
            asyncio.run(drive())
            while any(thread.name in ("swefarm-call", "swefarm-cancel") for thread in threading.enumerate()):
                time.sleep(0.01)
            return fake.paths()

    def test_a_cancelled_rollout_does_not_begin_when_the_farm_returns(self):
        answers = Rollouts((503, {}), (503, {}), WAITING)
        self.assertEqual(self.drive_cancelled(answers), ["/v1/rollouts"] * 2)

    def test_a_rollout_whose_first_answer_follows_its_cancellation_is_cancelled(self):
        tries = []

        def script(method, path, asked):
            tries.append(path)
            if len(tries) == 2:  # The cancellation does not receive the id.
                return 503, {}
            while len(tries) < 2:
                time.sleep(0.01)
            time.sleep(0.1)
            return WAITING

        self.assertEqual(self.drive_cancelled(script), ["/v1/rollouts", "/v1/rollouts", "/v1/runs/r1/cancel"])

    def test_a_quota_makes_the_call_wait_until_it_is_cancelled(self):
        busy = 429, {"error": {"code": "over_quota", "message": "wait for results", "field": None}}
        with FakeFarm(Rollouts(busy, busy, WAITING, DONE), {"retry-after": "0"}) as fake:
            self.assertEqual(run_of(fake, patience_s=0.001).play("a").reward, 1.0)
            self.assertEqual(len(fake.asked), 4)
        with FakeFarm(Rollouts(busy), {"retry-after": "3600"}) as fake:
            self.assertEqual(run_of(fake).play("a", timeout_s=0.05).failure.cls, "timeout")

            async def drive():
                task = asyncio.ensure_future(run_of(fake).rollout("a"))
                while len(fake.asked) < 2:
                    await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

            asyncio.run(drive())
            while any(thread.name == "swefarm-call" for thread in threading.enumerate()):
                time.sleep(0.01)
            self.assertEqual(len(fake.asked), 2)

    def test_a_request_for_a_cancelled_rollout_plays_it_again(self):
        cancelled = 200, {"status": "done", "rollout_id": "r1.a.0", **body(result(reward=None, outcome="cancelled", reward_row="cancelled"), segments=[])}
        with FakeFarm(Rollouts(cancelled, WAITING, DONE)) as fake:
            self.assertEqual(run_of(fake).play("a", request_id="7").reward, 1.0)
            self.assertEqual({asked["request_id"] for _, _, asked in fake.asked}, {"exp/7"})
        # A rollout that is cancelled while the client waits is a sample without reward.
        with FakeFarm(Rollouts(WAITING, cancelled)) as fake:
            self.assertEqual(run_of(fake).play("a").failure.stage, "cancelled")

    def test_a_missing_artifact_fails_the_sample(self):
        gone = 404, {"error": {"code": "artifact_missing", "message": "no artifact: removed or expired", "field": "rollout"}}
        with FakeFarm(Rollouts(WAITING, gone)) as fake:
            sample = run_of(fake).play("a")
        self.assertEqual((sample.failure.cls, sample.rollout_id), ("not_fetched", "r1.a.0"))

    def test_forty_rollouts_wait_concurrently(self):
        with FakeFarm(Rollouts(DONE)) as fake:

            async def drive():
                run = run_of(fake, patience_s=30)
                return await asyncio.gather(*(run.rollout("a", index=index) for index in range(40)))

            self.assertEqual([sample.index for sample in asyncio.run(drive())], list(range(40)))


if __name__ == "__main__":
    unittest.main()
