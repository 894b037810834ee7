import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from fakefarm import FakeFarm

#: `begun` returns when the farm plays what the process asked for.
START = """
import asyncio, os, signal, sys, threading
from swefarm import Farm
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
farm = Farm(sys.argv[1], "t")
run = farm.run("exp", model="m", policy_urls=["http://p/v1"])
def begun():
    farm.call("GET", "/begun")
def background(work, *words):
    threading.Thread(target=work, args=words, daemon=True).start()
def signalled(number):
    begun()
    os.kill(os.getpid(), number)
def loop(key):
    for group in run.groups(["a"], n=2, key=key):
        pass
"""
ROLLOUT = "POST", "/v1/runs/r1/cancel", {"rollouts": ["r1.a.0"]}
RUN = "POST", "/v1/runs/r1/cancel", {}


class Playing:
    """Plays rollouts and groups that never end. ``names`` False: the first answer, which names the rollout, does not come."""

    def __init__(self, names=True, count=1, cancel_s=0.0):
        self.names, self.left, self.cancel_s = names, count, cancel_s
        self.begun, self.over = threading.Event(), threading.Event()

    def __call__(self, method, path, asked):
        if path == "/begun":
            self.begun.wait(30)
        elif path == "/v1/runs":
            return 201, {"run_id": "r1", "instance_ids": ["a"], "rollouts": 2, "queued": 2}
        elif path.endswith("/cancel"):
            self.over.set()
            time.sleep(self.cancel_s)
        elif path == "/v1/rollouts":
            if not self.names or asked["wait_seconds"]:
                self.names = True
                self.wait()
            return 200, {"status": "waiting", "rollout_id": f"r1.{asked['instance']}.0"}
        elif "/groups" in path:
            self.wait()
            return 200, {"groups": [], "last_id": "0", "done": False}
        return 200, {}

    def wait(self):
        self.left -= 1
        if not self.left:
            self.begun.set()
        self.over.wait(30)


class ExitTest(unittest.TestCase):
    def cancelled(self, code, playing=None, ended=0):
        """Runs code in a process. Returns the cancellations that it sent."""
        playing = playing or Playing()
        with FakeFarm(playing) as fake:
            self.addCleanup(playing.over.set)
            command = [sys.executable, "-c", START + code, fake.url]
            child = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=60)
            self.assertEqual(child.returncode, ended, child.stderr)
            self.assertNotIn("Exception ignored", child.stderr)
            self.after = fake.paths()
            while not self.after.pop(0).endswith("/cancel") and self.after:
                pass
            return [asked for asked in fake.asked if asked[1].endswith(("/cancel", "/forked"))]

    def test_a_process_that_cancels_a_coroutine_and_ends_cancels_the_rollout(self):
        code = """
async def main():
    task = asyncio.ensure_future(run.rollout("a"))
    await asyncio.to_thread(begun)
    task.cancel()
asyncio.run(main())
"""
        for names in (True, False):
            with self.subTest(names=names):
                self.assertEqual(self.cancelled(code, Playing(names)), [ROLLOUT])

    def test_signals_cancel_single_rollouts(self):
        for play in ("run.play('a')", "asyncio.run(run.rollout('a'))"):
            for number, ended in (("SIGTERM", 143), ("SIGINT", -2)):
                for names in (True, False):
                    with self.subTest(play=play, number=number, names=names):
                        code = f"background(signalled, signal.{number})\n{play}"
                        self.assertEqual(self.cancelled(code, Playing(names), ended), [ROLLOUT])

    def test_the_end_of_a_process_cancels_the_rollouts_of_its_threads_at_once(self):
        ((method, path, asked),) = self.cancelled("background(run.play, 'a'); background(run.play, 'b'); begun()", Playing(count=2))
        self.assertEqual((method, path, sorted(asked["rollouts"])), ("POST", "/v1/runs/r1/cancel", ["r1.a.0", "r1.b.0"]))

    def test_a_thread_begins_no_rollouts_when_the_process_ends(self):
        code = """
def play():
    while True: run.play("a")
background(play); begun()
"""
        self.assertEqual(self.cancelled(code, Playing(cancel_s=0.5)), [ROLLOUT])
        self.assertEqual(self.after, [])

    def test_the_end_of_a_process_cancels_groups_unless_they_have_a_key(self):
        for key, sent in ((None, [RUN]), ("k", [])):
            for code, ended in (
                (f"background(loop, {key!r}); begun()", 0),
                (f"background(signalled, signal.SIGTERM); loop({key!r})", 143),
                (f"background(signalled, signal.SIGTERM)\nwith run: loop({key!r})", 143),
                (f"background(signalled, signal.SIGINT)\nwith run: loop({key!r})", -2),
                (f"with run:\n    background(loop, {key!r}); begun(); 1 / 0", 1),
            ):
                with self.subTest(code=code):
                    self.assertEqual(self.cancelled(code, ended=ended), sent)

    def test_a_block_that_ends_cancels_groups_with_a_key(self):
        self.assertEqual(self.cancelled("with run: background(loop, 'k'); begun()"), [RUN])

    def test_a_forked_process_leaves_the_rollouts_of_its_parent(self):
        code = """
background(loop, None); background(run.play, "a"); begun()
child = os.fork()
if child: os.waitpid(child, 0); farm.call("GET", "/forked")
"""
        forked, *cancelled = self.cancelled(code, Playing(count=2))
        self.assertEqual((forked[1], sorted(cancelled, key=str)), ("/forked", sorted([ROLLOUT, RUN], key=str)))


if __name__ == "__main__":
    unittest.main()
