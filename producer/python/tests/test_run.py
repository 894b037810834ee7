import asyncio
import base64
import contextlib
import threading
import time
import unittest
from array import array
from unittest import mock

from fakefarm import FakeFarm
from swefarm import Farm, FarmError, FarmRefusal, Sampling, groups

SECONDS = {"model": 3.0, "command": 2.0, "evaluation": 1.0}


def packed(typecode, *numbers):
    return base64.b64encode(array(typecode, numbers).tobytes()).decode()


def result(index=0, reward=1.0, instance="a", **more):
    known = {"rollout_id": f"r1.{instance}.{index}", "instance_id": instance, "rollout_index": index, "outcome": "judged", "reward": reward}
    ends = {"reward_row": "judged", "exit_status": "submitted", "failure": None, "seconds": SECONDS, "artifact": "redis:x"}
    return {**known, **ends, **more}


LOST = {"outcome": "failed", "artifact": None, "failure": {"stage": "agent", "class": "node_lost", "message": "n1 is gone"}}


def segment(**more):
    """Prompt 1 2; response: turn 3 4, told 5, turn 6."""
    ids = {"prompt_ids": packed("i", 1, 2), "response_ids": packed("i", 3, 4, 5, 6), "log_probs": packed("f", -0.5, -0.25, -1.0)}
    turns = {"turns": [[0, 2, "stop", "v1"], [3, 4, "length", None]], "spans": [["v1", 0, 2]]}
    return {"line": "L1", "kind": "main", "weight": 1.0, **ids, **turns, **more}


def body(of=None, **more):
    return {"result": of or result(), "truncated": False, "segments": [segment()], "missing": None, **more}


def run_of(fake, patience_s=0.2, **options):
    return Farm(fake.url, "t", patience_s=patience_s).run("exp", model="m", policy_urls=["http://p/v1"], **options)


class Rollouts:
    """Answers of POST /v1/rollouts in order; the last one remains."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self, method, path, asked):
        if path.endswith("/cancel"):
            return 200, {"cancelled": []}
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


WAITING = 200, {"status": "waiting", "rollout_id": "r1.a.0"}
DONE = 200, {"status": "done", "rollout_id": "r1.a.0", **body()}


class RolloutTest(unittest.TestCase):
    def test_all_tries_are_one_request_until_the_sample_is_there(self):
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

    def test_what_was_not_judged_is_a_sample_without_reward(self):
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

    def test_a_farm_that_is_away_loses_the_sample_and_a_wrong_request_raises(self):
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

    def test_the_id_of_a_cancelled_rollout_is_played_anew(self):
        cancelled = 200, {"status": "done", "rollout_id": "r1.a.0", **body(result(reward=None, outcome="cancelled", reward_row="cancelled"), segments=[])}
        with FakeFarm(Rollouts(cancelled, WAITING, DONE)) as fake:
            self.assertEqual(run_of(fake).play("a", request_id="7").reward, 1.0)
            self.assertEqual({asked["request_id"] for _, _, asked in fake.asked}, {"exp/7"})
        # One that somebody cancels while it is waited for is a sample.
        with FakeFarm(Rollouts(WAITING, cancelled)) as fake:
            self.assertEqual(run_of(fake).play("a").failure.stage, "cancelled")

    def test_what_is_stored_no_more_of_an_ended_rollout_loses_the_sample(self):
        gone = 404, {"error": {"code": "artifact_missing", "message": "no artifact: removed or expired", "field": "rollout"}}
        with FakeFarm(Rollouts(WAITING, gone)) as fake:
            sample = run_of(fake).play("a")
        self.assertEqual((sample.failure.cls, sample.rollout_id), ("not_fetched", "r1.a.0"))

    def test_many_rollouts_wait_at_once(self):
        with FakeFarm(Rollouts(DONE)) as fake:

            async def drive():
                run = run_of(fake, patience_s=30)
                return await asyncio.gather(*(run.rollout("a", index=index) for index in range(40)))

            self.assertEqual([sample.index for sample in asyncio.run(drive())], list(range(40)))


class Played:
    """A run of instances with two rollouts each, whose groups end one after the other; without ``ends`` none ends."""

    def __init__(self, instances=("a", "b"), ends=True, away_after=None, submits_s=0.0):
        self.submits_s = submits_s
        self.instances, self.ends, self.away_after, self.cancelled = instances, ends, away_after, threading.Event()

    def __call__(self, method, path, asked):
        if path == "/v1/runs":
            time.sleep(self.submits_s)
            return 201, {"run_id": "r1", "instance_ids": list(self.instances), "rollouts": 2 * len(self.instances), "queued": 1}
        if path.endswith("/cancel"):
            self.cancelled.set()
            return 200, {}
        if path.endswith("/heartbeat"):
            return 200, {"alive": ["r1"]}
        if "/sample" in path:
            return 200, body(result(instance=path.split(".")[1], index=int(path.split("?")[0].split(".")[2].split("/")[0])))
        if "/groups" not in path:
            return 200, {"left": 1}
        at = int(path.split("after=")[1].split("&")[0])
        if self.away_after is not None and at >= self.away_after:
            return 503, {}
        if not self.ends or at >= len(self.instances):
            time.sleep(0.01)
            return 200, {"groups": [], "last_id": str(at), "done": self.ends}
        instance = self.instances[at]
        results = [result(0, 1.0, instance), result(1, None, instance, **LOST)]
        group = {"instance_id": instance, "end": "short", "results": results, "unreadable": []}
        return 200, {"groups": [group], "last_id": str(at + 1), "done": False}


@mock.patch.object(groups, "LEAVE_S", 0.02)
class GroupsTest(unittest.TestCase):
    def test_groups_come_as_they_end_with_their_samples_and_cursors(self):
        with FakeFarm(Played()) as fake, run_of(fake) as run:
            got = list(run.groups([{"instance_id": "a"}, "b"], n=2, key="step-1"))
            self.assertEqual([(group.id, group.end, group.cursor) for group in got], [("r1/a", "short", "1"), ("r1/b", "short", "2")])
            self.assertEqual([(one.index, one.reward, one.failure and one.failure.cls) for one in got[0].samples], [(0, 1.0, None), (1, None, "node_lost")])
            self.assertEqual([one.group for one in got[1].judged], ["r1/b"])
            self.assertEqual([group.instance_id for group in run.groups(["a", "b"], n=2, key="step-1", after=got[0].cursor)], ["b"])
        submissions = [asked for _, path, asked in fake.asked if path == "/v1/runs"]
        self.assertEqual(submissions[0]["instances"], [{"instance_id": "a"}, "b"])
        self.assertEqual((submissions[0]["group_size"], submissions[0]["lease_seconds"]), (2, 900.0))
        self.assertEqual([key for key in fake.keys if key], ["exp/step-1", "exp/step-1"])
        # A run that has ended is not cancelled.
        self.assertNotIn("/v1/runs/r1/cancel", fake.paths())

    def test_a_key_may_have_any_characters(self):
        with FakeFarm(Played(("a",))) as fake:
            self.assertEqual(len(list(run_of(fake).groups(["a"], n=2, key="Schritt 1 – α"))), 1)
            self.assertEqual(fake.keys[0], "exp/Schritt%201%20%E2%80%93%20%CE%B1")

    def test_asyncio_and_threads_iterate_over_the_same_object(self):
        async def drive(run):
            async with run:
                return [group.instance_id async for group in run.groups(["a", "b"], n=2)]

        with FakeFarm(Played()) as fake:
            self.assertEqual(asyncio.run(drive(run_of(fake))), ["a", "b"])

    def test_leaving_the_loop_cancels_what_is_under_way(self):
        for key in (None, "step-1"):
            played = Played()
            with FakeFarm(played) as fake, run_of(fake) as run:
                for _ in run.groups(["a", "b"], n=2, key=key):
                    break
                self.assertTrue(played.cancelled.wait(10))

    def test_an_exception_leaves_a_run_with_a_key_to_its_successor(self):
        for key in (None, "step-1"):
            played = Played()
            with FakeFarm(played) as fake:
                with contextlib.suppress(ZeroDivisionError), run_of(fake) as run:
                    for _ in run.groups(["a", "b"], n=2, key=key):
                        raise ZeroDivisionError
                time.sleep(0.1)
                self.assertEqual(played.cancelled.is_set(), key is None)

    def test_a_cancelled_loop_cancels_the_run_unless_a_key_leaves_it_to_its_successor(self):
        async def drive(run, key, begun):
            async def loop():
                async with run:
                    async for _ in run.groups(["a"], n=2, key=key):
                        pass

            task = asyncio.ensure_future(loop())
            while not any(begun in path for path in fake.paths()):
                await asyncio.sleep(0.01)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        for key, begun in ((None, "/groups"), ("k", "/groups"), (None, "/v1/runs"), ("k", "/v1/runs")):
            played = Played(ends=False, submits_s=0.1)
            with self.subTest(key=key, begun=begun), FakeFarm(played) as fake:
                asyncio.run(drive(run_of(fake), key, begun))
                if key is None:
                    self.assertTrue(played.cancelled.wait(10))
                time.sleep(0.3)
                self.assertEqual(played.cancelled.is_set(), key is None)

    def test_an_interrupt_of_a_notebook_leaves_the_loop_though_its_object_lives(self):
        played = Played()
        with FakeFarm(played) as fake:
            loop = run_of(fake).groups(["a", "b"], n=2)
            next(loop)
            with mock.patch.object(loop, "_read", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
                next(loop)
            self.assertTrue(played.cancelled.wait(10))

    def test_a_farm_that_goes_away_behind_the_last_group_ends_the_loop(self):
        with FakeFarm(Played(("a",), away_after=1)) as fake, self.assertLogs("swefarm.groups", "WARNING"):
            self.assertEqual([group.end for group in run_of(fake).groups(["a"], n=2)], ["short"])

    def test_a_farm_that_goes_away_within_a_group_is_waited_for_once(self):
        def script(method, path, asked):
            if "/sample" in path:
                return 503, {}
            status, answer = Played(("a",))(method, path, asked)
            for group in answer.get("groups", ()):
                group["results"] = [result(index) for index in range(8)]
            return status, answer

        with FakeFarm(script) as fake:
            (group,) = run_of(fake).groups(["a"], n=8)
            self.assertEqual([one.failure.cls for one in group.samples], ["not_fetched"] * 8)
            self.assertEqual({path for path in fake.paths() if "/sample" in path}, {"/v1/rollouts/r1.a.0/sample?lines=main&routed_experts=false"})

    def test_a_farm_that_goes_away_owes_groups_without_rewards(self):
        with FakeFarm(Played(("a", "b", "c"), away_after=1)) as fake, run_of(fake) as run:
            got = list(run.groups(["a", "b", "c"], n=2))
            self.assertEqual([(group.instance_id, group.end, len(group.judged)) for group in got], [("a", "short", 1), ("b", "cancelled", 0), ("c", "cancelled", 0)])
            self.assertEqual([one.failure.cls for one in got[1].samples], ["farm_away", "farm_away"])
            # What was delivered before `after` is not known, so nothing is made up.
            with self.assertRaises(FarmError):
                list(run.groups(["a", "b", "c"], n=2, after="1"))

    def test_what_a_lapsed_lease_cancelled_is_played_again_under_the_same_key(self):
        def script(method, path, asked):
            if path == "/v1/runs":
                first = len(asked["instances"]) == 3
                status, answer = Played(asked["instances"])(method, path, asked)
                return status, {**answer, "run_id": "r1" if first else "r2", "cancelled": "lease" if first else None}
            played = Played(("a", "b", "c") if "/r1/" in path else ("b", "c"))
            status, answer = played(method, path, asked)
            for group in answer.get("groups", ()):
                if "/r1/" in path and group["instance_id"] != "a":
                    group["end"] = "cancelled"
            return status, answer

        with FakeFarm(script) as fake, self.assertLogs("swefarm.groups", "WARNING"):
            run = run_of(fake)
            got = list(run.groups(["a", "b", "c"], n=2, key="k"))
            self.assertEqual([(group.id, group.end) for group in got], [("r1/a", "short"), ("r2/b", "short"), ("r2/c", "short")])
            self.assertEqual([key for key in fake.keys if key], ["exp/k", "exp/k#2"])
            for after, left in zip(got, (["b", "c"], ["c"], [])):
                again = run.groups(["a", "b", "c"], n=2, key="k", after=after.cursor)
                self.assertEqual([group.instance_id for group in again], left)

    def test_the_lease_is_renewed_until_the_run_ends(self):
        played = Played(ends=False)
        with FakeFarm(played) as fake:
            run = run_of(fake, lease_s=0.2)
            loop = threading.Thread(target=lambda: list(run.groups(["a"], n=2)))
            loop.start()
            while ("POST", "/v1/runs/heartbeat", {"lease_seconds": 0.2, "run_ids": ["r1"]}) not in fake.asked:
                time.sleep(0.01)
            played.ends = True
            loop.join(30)

    def test_a_bad_name_or_row_is_refused_before_anything_is_played(self):
        with self.assertRaisesRegex(ValueError, "name: expected letters"):
            Farm("http://127.0.0.1:9").run("a name")
        with FakeFarm(lambda *_: (422, {"error": {"code": "bad_row", "message": "instances.0: no", "field": "instances.0"}})) as fake:
            with self.assertRaises(FarmRefusal):
                list(run_of(fake).groups(["a"]))


class PolicyTest(unittest.TestCase):
    def script(self, method, path, asked):
        return 200, {**(asked or {}), "name": "exp"}

    def test_an_update_stops_the_policy_and_names_the_new_weights(self):
        with FakeFarm(self.script) as fake:
            run = run_of(fake)
            self.assertEqual(run.settings()["policy"]["urls"], ["http://p/v1"])
            run.policy(["http://q/v1"], version="step-0")
            with run.update("step-1"):
                self.assertEqual(fake.asked[-1], ("PUT", "/v1/policies/exp", {"state": "updating", "endpoints": ["http://q/v1"]}))

            async def drive():
                async with run.update("step-2", urls=["http://r/v1"], model="m-v2"):
                    pass

            asyncio.run(drive())
        # An earlier process may have left another model in the record.
        first = {"state": "serving", "endpoints": ["http://q/v1"], "version": "step-0", "model": "m"}
        last = {"state": "serving", "endpoints": ["http://r/v1"], "version": "step-2", "model": "m-v2"}
        self.assertEqual((fake.asked[0][2], fake.asked[-1][2], run.version), (first, last, "step-2"))
        # Rollouts follow the policy's record, so that a resumed run may have other addresses.
        self.assertEqual((run.settings()["policy"]["name"], "urls" in run.settings()["policy"]), ("exp", False))

    def test_the_first_model_of_the_policy_is_that_of_the_settings(self):
        with FakeFarm(self.script) as fake:
            run = Farm(fake.url).run("exp")
            run.policy(["http://q/v1"], model="lora-v0", version="0")
            with run.update("1", model="lora-v1"):
                pass
            run.policy(["http://r/v1"])
            self.assertEqual([asked.get("model") for _, _, asked in fake.asked], ["lora-v0", None, "lora-v1", "lora-v1"])
        self.assertEqual((run.settings()["policy"]["name"], run.settings()["policy"]["model"]), ("exp", "lora-v0"))

    def test_after_a_failed_update_the_policy_stays_stopped(self):
        with FakeFarm(self.script) as fake:
            run = run_of(fake)
            with self.assertLogs("swefarm.run", "WARNING"), contextlib.suppress(ZeroDivisionError), run.update("step-1"):
                raise ZeroDivisionError
            self.assertEqual([asked["state"] for _, _, asked in fake.asked], ["updating"])


if __name__ == "__main__":
    unittest.main()
