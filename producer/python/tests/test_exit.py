import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from fakefarm import FakeFarm

#: `begun` returns when the farm plays the rollouts that the process requested.
START = """
import asyncio, atexit, os, signal, sys, threading, time
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
ROLLOUT = "POST", "/v1/runs/s1/cancel", {"rollouts": ["s1.a.0"]}
RUN = "POST", "/v1/runs/r1/cancel", {}


class Playing:
    """
    Plays rollouts and groups that never end. ``names`` False: the first answer, which names the rollout or run, does not come. ``lost``:
    number of cancellations whose connection breaks. ``groups``: number of groups that end.
    """

    def __init__(self, names=True, count=1, cancel_s=0.0, lost=0, groups=0):
        self.names, self.left, self.cancel_s, self.lost, self.groups = names, count, cancel_s, lost, groups
        self.begun, self.over, self.cancelling = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, method, path, asked):
        if path == "/begun":
            self.begun.wait(30)
        elif path == "/cancelling":
            self.cancelling.wait(30)
        elif path == "/v1/runs":
            if not self.names:
                self.names = True
                self.wait()
            return 201, {"run_id": "r1", "instance_ids": ["a"], "rollouts": 2, "queued": 2}
        elif path.endswith("/cancel"):
            self.cancelling.set()
            if self.lost:
                self.lost -= 1
                self.over.wait(1)
                return None
            self.over.set()
            time.sleep(self.cancel_s)
        elif path == "/v1/rollouts":
            if not self.names or asked["wait_seconds"]:
                self.names = True
                self.wait()
            return 200, {"status": "waiting", "rollout_id": f"s1.{asked['instance']}.0"}
        elif "/groups" in path:
            if self.groups:
                self.groups -= 1
                return 200, {"groups": [{"instance_id": "a", "end": "short", "results": [], "unreadable": []}], "last_id": "1", "done": False}
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
            self.after, self.asked = fake.paths(), fake.asked
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
        self.assertEqual((method, path, sorted(asked["rollouts"])), ("POST", "/v1/runs/s1/cancel", ["s1.a.0", "s1.b.0"]))

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

    def test_the_end_of_a_forked_process_does_not_block_on_groups_of_its_parent(self):
        code = """
held = run.groups(["a", "b"], n=2); next(held)
child = os.fork()
if child:
    end = time.monotonic() + 10
    while not (status := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end: time.sleep(0.02)
    if not status[0]: os.kill(child, 9)
    farm.call("GET", "/forked"); held.close(); sys.exit(status[1] or not status[0])
"""
        self.assertEqual([path for _, path, _ in self.cancelled(code, Playing(groups=1))], ["/forked", RUN[1]])

    def test_a_forked_worker_of_multiprocessing_cancels_what_it_began(self):
        code = """
import multiprocessing
def work():
    background(loop, None); background(run.play, "a"); begun()
child = multiprocessing.get_context("fork").Process(target=work); child.start(); child.join()
"""
        self.assertEqual(sorted(self.cancelled(code, Playing(count=2)), key=str), sorted([ROLLOUT, RUN], key=str))

    def test_a_forked_process_renews_its_leases(self):
        code = """
run = farm.run("exp", model="m", lease_s=0.2)
background(loop, "k"); begun()
child = os.fork()
if child: os.waitpid(child, 0); os._exit(0)
run._hearts.keep(type("Session", (), {"farm": farm, "session_id": "forked"})()); time.sleep(0.5); os._exit(0)
"""
        self.cancelled(code)
        self.assertTrue(any((asked or {}).get("run_ids") == ["forked"] for _, _, asked in self.asked))

    def test_threads_that_are_no_daemons_do_not_delay_the_end_of_the_process(self):
        pool = "from concurrent.futures import ThreadPoolExecutor; pool = ThreadPoolExecutor(1)"
        coroutines = """
async def both(): await run.rollout("a"); await run.rollout("a")
threading.Thread(target=asyncio.run, args=(both(),)).start()
"""
        for code, sent in (
            (f"{pool}; pool.submit(run.play, 'a'); pool.submit(run.play, 'a')", ROLLOUT),
            ("threading.Thread(target=run.play, args='a').start()", ROLLOUT),
            ("threading.Thread(target=loop, args=(None,)).start()", RUN),
            (coroutines, ROLLOUT),
        ):
            with self.subTest(code=code):
                self.assertEqual(self.cancelled(f"{code}\nbegun(); sys.exit(3)", ended=3), [sent])

    def test_the_end_of_a_process_cancels_what_no_answer_named(self):
        for code, sent in (("run.play, 'a'", ROLLOUT), ("loop, None", RUN), ("loop, 'k'", None)):
            with self.subTest(code=code):
                self.assertEqual(self.cancelled(f"background({code}); begun()", Playing(names=False)), [sent] if sent else [])

    def test_an_interrupt_while_a_run_is_submitted_cancels_the_run(self):
        coroutine = """
async def main():
    async with run:
        async for group in run.groups(["a"], n=2): pass
asyncio.run(main())
"""
        for code in ("loop(None)", coroutine):
            with self.subTest(code=code):
                interrupt = "background(signalled, signal.SIGINT)\n"
                self.assertEqual(self.cancelled(interrupt + code, Playing(names=False), ended=-2), [RUN])

    def test_a_cancellation_that_an_interrupt_ends_is_repeated(self):
        code = """
def twice():
    signalled(signal.SIGINT); farm.call("GET", "/cancelling"); os.kill(os.getpid(), signal.SIGINT)
background(twice)
"""
        groups = "with run: background(loop, None); begun(); run.close()"
        for play, sent in (("run.play('a')", ROLLOUT), (groups, RUN)):
            with self.subTest(play=play):
                # On a busy machine the interrupt may end the repetition, which then is repeated too.
                requests = self.cancelled(code + play, Playing(lost=1), ended=-2)
                self.assertEqual(requests, [sent] * max(2, len(requests)))

    def test_threads_neither_play_nor_submit_while_exit_handlers_run(self):
        code = """
played = []
def play():
    while True: run.play("a"); played.append(1)
def submit():
    while True: loop(None)
atexit.register(lambda: (time.sleep(0.3), len(played) > 1 and os._exit(9)))
background(play); background(submit); begun()
"""
        sent = self.cancelled(code, Playing(count=2))
        self.assertEqual(sorted(sent, key=str), sorted([ROLLOUT, RUN], key=str))
        self.assertEqual([path for path in self.after if path in ("/v1/runs", "/v1/rollouts")], [])

    def test_an_interrupt_cancels_a_batch_below_a_running_event_loop(self):
        code = """
from swefarm.trainers.batch import play
async def cell(): play(run, [{"instance": "a"}, {"instance": "b"}])
signal.signal(signal.SIGINT, signal.default_int_handler)  # As in a notebook; asyncio.run has a handler of its own.
background(signalled, signal.SIGINT)
asyncio.new_event_loop().run_until_complete(cell())
"""
        sent = self.cancelled(code, Playing(count=2), ended=-2)
        self.assertEqual(sorted(one for _, _, asked in sent for one in asked["rollouts"]), ["s1.a.0", "s1.b.0"])


if __name__ == "__main__":
    unittest.main()
