import asyncio
import contextlib
import threading
import time
import unittest
from unittest import mock

from answers import LOST, body, result, run_of
from fakefarm import FakeFarm
from swefarm import Farm, FarmError, FarmRefusal, groups


class Played:
    """A run with two rollouts for each instance. Its groups end one after the other, or never if ``ends`` is false."""

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
    def test_groups_arrive_as_they_end_with_samples_and_cursors(self):
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

    def test_leaving_the_loop_cancels_the_run(self):
        for key in (None, "step-1"):
            played = Played()
            with FakeFarm(played) as fake, run_of(fake) as run:
                for _ in run.groups(["a", "b"], n=2, key=key):
                    break
                self.assertTrue(played.cancelled.wait(10))

    def test_an_exception_cancels_the_run_unless_it_has_a_key(self):
        for key in (None, "step-1"):
            played = Played()
            with FakeFarm(played) as fake:
                with contextlib.suppress(ZeroDivisionError), run_of(fake) as run:
                    for _ in run.groups(["a", "b"], n=2, key=key):
                        raise ZeroDivisionError
                time.sleep(0.1)
                self.assertEqual(played.cancelled.is_set(), key is None)

    def test_a_cancelled_loop_cancels_the_run_unless_it_has_a_key(self):
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

    def test_a_keyboard_interrupt_cancels_the_run_while_the_loop_object_lives(self):
        played = Played()
        with FakeFarm(played) as fake:
            loop = run_of(fake).groups(["a", "b"], n=2)
            next(loop)
            with mock.patch.object(loop, "_read", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
                next(loop)
            self.assertTrue(played.cancelled.wait(10))

    def test_an_interrupted_step_does_not_lose_its_group(self):
        with FakeFarm(Played()) as fake:
            loop = run_of(fake).groups(["a", "b"], n=2, key="k")
            with mock.patch.object(loop, "_sample_of", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
                next(loop)
            self.assertEqual(loop.cursor, "0")
            self.assertEqual([(group.instance_id, group.cursor) for group in loop], [("a", "1"), ("b", "2")])

    def test_a_quota_makes_a_group_wait_for_its_samples(self):
        busy = [20]

        def script(method, path, asked):
            if "/sample" in path and busy[0]:
                busy[0] -= 1
                return 429, {"error": {"code": "over_quota", "message": "later", "field": None}}
            return Played(("a",))(method, path, asked)

        with FakeFarm(script, {"retry-after": "0"}) as fake:
            (group,) = run_of(fake, patience_s=0.001).groups(["a"], n=2)
            self.assertEqual([sample.reward for sample in group.samples], [1.0, None])

    def test_a_farm_that_fails_after_the_last_group_ends_the_loop(self):
        with FakeFarm(Played(("a",), away_after=1)) as fake, self.assertLogs("swefarm.groups", "WARNING"):
            self.assertEqual([group.end for group in run_of(fake).groups(["a"], n=2)], ["short"])

    def test_a_farm_that_fails_within_a_group_is_waited_for_once(self):
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

    def test_groups_of_a_farm_that_fails_have_no_rewards(self):
        with FakeFarm(Played(("a", "b", "c"), away_after=1)) as fake, run_of(fake) as run:
            got = list(run.groups(["a", "b", "c"], n=2))
            self.assertEqual([(group.instance_id, group.end, len(group.judged)) for group in got], [("a", "short", 1), ("b", "cancelled", 0), ("c", "cancelled", 0)])
            self.assertEqual([one.failure.cls for one in got[1].samples], ["farm_away", "farm_away"])
            # The client does not know which groups came before `after`, so it raises.
            with self.assertRaises(FarmError):
                list(run.groups(["a", "b", "c"], n=2, after="1"))

    def test_groups_cancelled_by_an_expired_lease_are_played_again_under_the_key(self):
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

    def test_a_bad_name_or_row_is_refused_before_any_rollout_starts(self):
        with self.assertRaisesRegex(ValueError, "name: expected letters"):
            Farm("http://127.0.0.1:9").run("a name")
        with FakeFarm(lambda *_: (422, {"error": {"code": "bad_row", "message": "instances.0: no", "field": "instances.0"}})) as fake:
            with self.assertRaises(FarmRefusal):
                list(run_of(fake).groups(["a"]))


if __name__ == "__main__":
    unittest.main()
