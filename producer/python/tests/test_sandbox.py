import asyncio
import base64
import unittest

from fakefarm import FakeFarm

from swefarm import AsyncSandbox, FarmRefusal, FileError, Sandbox, SandboxEnded, SandboxError, SandboxLost
from swefarm.sandbox import hearts

OPENED = {"session_id": "s1", "rollout_id": "s1.a.0", "said": 0}
JUDGED = {"judged": True, "reward": 1, "resolved": True, "exit_status": "submitted", "turns": 1}


def answered(data="", **more):
    content = {"data": data, "encoding": "utf-8", "bytes": len(data), "head_bytes": None}
    return {"state": "answered", "exit_code": 0, "seconds": 0.1, "note": None, "observation": data, "content": content, **more}


class Script:
    """Answers inputs in order. The session is open, and a submission is judged."""

    def __init__(self, *answers, state="open"):
        self.answers, self.state = list(answers), state

    def __call__(self, method, path, body):
        if path == "/v1/sessions":
            return 200, OPENED
        if path.endswith("/heartbeat"):
            return 200, {"alive": ["s1"]}
        if path.endswith("/submit"):
            return 200, {"state": "ended", "result": JUDGED}
        if path == "/v1/sessions/s1":
            return 200, {"state": self.state, "end": "lease", "result": None}
        return self.answers.pop(0)


def opened(fake, **more):
    return Sandbox.open({"instance_id": "a"}, url=fake.url, token="t", patience_s=2, **more)


def inputs(fake):
    return [(path.split("/s1/")[1], body) for _, path, body in fake.asked if body and "seq" in body]


class SandboxTest(unittest.TestCase):
    def test_inputs_are_numbered_and_a_broken_call_is_repeated_with_its_number(self):
        script = Script((200, {"state": "waiting", "seq": 1}), None, (503, {}), (200, answered("one\n")), (200, answered()))
        with FakeFarm(script) as fake, opened(fake) as box:
            done = box.run("echo one", cwd="/tmp", env={"A": "b"}, timeout_s=3)
            self.assertEqual((done.text, done.exit_code, done.truncated, done.timed_out), ("one\n", 0, False, False))
            box.write("/x", b"\xff", 0o755)
            self.assertEqual([body["seq"] for _, body in inputs(fake)], [1, 1, 1, 1, 2])
            first, last = inputs(fake)[0][1], inputs(fake)[-1][1]
            self.assertEqual({key: first[key] for key in ("cwd", "env", "timeout_s")}, {"cwd": "/tmp", "env": {"A": "b"}, "timeout_s": 3})
            self.assertEqual((last["data"], last["mode"]), (base64.b64encode(b"\xff").decode(), 0o755))
        request = fake.asked[0][2]
        self.assertEqual((request["inputs"], request["clock"], request["agent"]["step_limit"]), ("all", "commands", 10_000))
        self.assertEqual(fake.asked[-1][0], "DELETE")
        self.assertFalse(hearts.beats_for("s1"))

    def test_a_gap_in_the_output_is_marked(self):
        gap = {"data": "abcd", "encoding": "utf-8", "bytes": 100, "head_bytes": 2}
        with FakeFarm(Script((200, answered(content=gap)))) as fake, opened(fake) as box:
            done = box.run("x", max_bytes=4)
            self.assertEqual((done.text, done.truncated), ("ab\n[96 bytes left out]\ncd", True))

    def test_unreadable_files_and_refusals_raise_different_errors(self):
        missing = {**answered(), "content": None, "error": {"code": "not_a_file", "message": "/x is missing"}}
        refusal = {"error": {"code": "bad_request", "message": "path: no", "field": "path"}}
        with FakeFarm(Script((200, missing), (400, refusal), (200, answered("x")))) as fake, opened(fake) as box:
            with self.assertRaises(FileError) as caught:
                box.read("/x")
            self.assertEqual((caught.exception.code, isinstance(caught.exception, OSError)), ("not_a_file", True))
            with self.assertRaises(FarmRefusal):
                box.read("../x")
            self.assertEqual(box.read("/x"), b"x")
            # A refused input uses no number.
            self.assertEqual([body["seq"] for _, body in inputs(fake)], [1, 2, 2])

    def test_an_end_is_remembered_and_a_loss_is_another_error(self):
        for end, result, kind in (
            ("time_limit", None, SandboxEnded),
            ("failed", None, SandboxLost),
            ("failed", {"failure": {"class": "session_lost"}}, SandboxLost),
        ):
            script = Script((200, {"state": "ended", "end": end, "result": result}))
            with FakeFarm(script) as fake, opened(fake) as box:
                for _ in range(2):
                    with self.assertRaises(kind) as caught:
                        box.run("x")
                    self.assertEqual((type(caught.exception), caught.exception.end), (kind, end))
                self.assertFalse(hearts.beats_for("s1"))

    def test_a_sandbox_that_does_not_start_is_closed(self):
        for state, error in (("waiting", SandboxError), ("grading", SandboxEnded)):
            with FakeFarm(Script(state=state)) as fake:
                with self.assertRaises(error):
                    opened(fake, start_s=0.2)
                self.assertEqual(fake.asked[-1][0], "DELETE")

    def test_asyncio_has_the_same_methods(self):
        async def drive(fake):
            async with await AsyncSandbox.open({}, url=fake.url) as box:
                self.assertEqual((await box.run("x")).text, "out")
                self.assertEqual(await box.diff(), "a patch")
                verdict = await box.submit()
                self.assertEqual((verdict.judged, verdict.reward), (True, 1))
                with self.assertRaises(SandboxEnded):
                    await box.run("late")

        with FakeFarm(Script((200, answered("out")), (200, answered("a patch")))) as fake:
            asyncio.run(drive(fake))
            self.assertNotIn("DELETE", [method for method, _, _ in fake.asked])


if __name__ == "__main__":
    unittest.main()
