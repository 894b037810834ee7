import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from swefarm import Farm, FarmError
from swefarm.local import find_swefarm

#: Stands in for `swefarm` and `swefarm-worker`: prints their lines of readiness, and records its end in a file.
PROGRAM = """#!{python}
import os, signal, sys, time
name = {{"redis": "redis", "serve": "gateway"}}.get(sys.argv[1], "worker")
def stop(*_):
    with open({ended!r}, "a") as file:
        file.write(name + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
if {fails!r} == name:
    sys.exit("no runtime is installed")
with open({pids!r}, "a") as file:
    print(os.getpid(), file=file)
print({{"redis": '{{"host":1}}', "gateway": '{{"url":"http://127.0.0.1:9"}}', "worker": '{{"msg":"ready"}}'}}[name], flush=True)
while True:
    time.sleep(1)
"""


def programs(folder, fails=""):
    """Writes the stand-ins, and returns the path of `swefarm`. The file `ended` in the folder lists the ended processes, in order."""
    for name in ("swefarm", "swefarm-worker"):
        path = Path(folder, name)
        path.write_text(PROGRAM.format(python=sys.executable, ended=f"{folder}/ended", pids=f"{folder}/pids", fails=fails))
        path.chmod(0o755)
    return Path(folder, "swefarm")


def ended(folder):
    path = Path(folder, "ended")
    return path.read_text().split() if path.exists() else []


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class LocalTest(unittest.TestCase):
    def test_a_local_farm_ends_in_order_at_the_end_of_its_block(self):
        with tempfile.TemporaryDirectory() as folder:
            with Farm.local(swefarm=programs(folder), workers=2, runtime="rootfs") as farm:
                self.assertEqual((farm.url, ended(folder)), ("http://127.0.0.1:9", []))
                self.assertTrue(farm.token)
            self.assertEqual(ended(folder), ["worker", "worker", "gateway", "redis"])
            self.assertFalse(farm.folder.exists())

    def test_an_error_names_the_process_that_cannot_start_and_ends_its_log(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(RuntimeError, "(?s)worker-0 of the local farm ended with code 1.*no runtime is installed"):
                Farm.local(swefarm=programs(folder, "worker"))
            self.assertEqual(ended(folder), ["gateway", "redis"])

    def test_the_farm_of_a_killed_process_ends_and_its_folder_is_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            # The forked child has the pipes, and continues.
            code = f"import os, time; from swefarm import Farm; farm = Farm.local(swefarm={str(programs(folder))!r})"
            code += "; pid = os.fork(); pid and print(pid, farm.folder, flush=True); time.sleep(600)"
            child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            forked, local = child.stdout.readline().decode().split()
            self.addCleanup(os.kill, int(forked), signal.SIGKILL)
            self.assertTrue(Path(local).exists())
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
            until = time.monotonic() + 60
            while Path(local).exists() and time.monotonic() < until:
                time.sleep(0.05)
            self.assertFalse(Path(local).exists())
            self.assertEqual(sorted(ended(folder)), ["gateway", "redis", "worker"])

    def test_the_farm_ends_although_forked_children_of_the_trainer_live(self):
        with tempfile.TemporaryDirectory() as folder:
            farm = Farm.local(swefarm=programs(folder))
            code = os.fork()
            if code == 0:  # The child has the pipes, as a worker of a data loader has.
                time.sleep(600)
                os._exit(0)
            try:
                farm.close()
                self.assertEqual(ended(folder), ["worker", "gateway", "redis"])
            finally:
                os.kill(code, signal.SIGKILL)
                os.waitpid(code, 0)

    def test_calls_fail_at_once_when_a_process_of_the_farm_has_ended(self):
        with tempfile.TemporaryDirectory() as folder, Farm.local(swefarm=programs(folder)) as farm:
            gateway = int(Path(folder, "pids").read_text().split()[1])
            os.kill(gateway, signal.SIGKILL)
            farm._processes["gateway"].wait(60)
            with self.assertRaisesRegex(FarmError, "the gateway of the local farm ended: .*url"):
                farm.call("GET", "/v1/runs")

    def test_no_program_survives_its_killed_supervisor(self):
        with tempfile.TemporaryDirectory() as folder:
            farm = Farm.local(swefarm=programs(folder))
            pids = [int(pid) for pid in Path(folder, "pids").read_text().split()]
            supervisors = dict(farm._processes)
            supervisors["redis"].terminate()
            supervisors["redis"].wait(60)
            self.assertEqual(ended(folder), ["redis"])
            supervisors["gateway"].kill()
            self.until(lambda: ended(folder) == ["redis", "gateway"])
            os.kill(pids[2], signal.SIGSTOP)  # The worker cannot handle SIGTERM.
            supervisors["worker-0"].kill()
            farm.close()
            self.until(lambda: not any(lives(pid) for pid in pids))

    def until(self, holds):
        end = time.monotonic() + 60
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_a_checkout_that_others_may_write_is_not_used(self):
        with tempfile.TemporaryDirectory() as folder:
            installed = programs(folder)
            checkout = Path(folder, "checkout")
            local = checkout / "node_modules/.bin/swefarm"
            for path in (local, checkout / "producer/bin/swefarm.mjs"):
                path.parent.mkdir(parents=True)
                path.touch(0o755)
            (checkout / "jobs").mkdir()
            self.addCleanup(os.chdir, os.getcwd())
            os.chdir(checkout / "jobs")
            own = {"SWEFARM_BIN": "", "PATH": folder}
            with mock.patch.dict(os.environ, own), mock.patch("swefarm.local.__file__", str(Path(folder, "none/local.py"))):
                self.assertEqual(find_swefarm(), local.resolve())
                checkout.chmod(0o1777)
                self.assertEqual(find_swefarm(), installed)
                checkout.chmod(0o755)
                if os.getuid() == 0:
                    os.chown(checkout, 12345, 12345)
                    self.assertEqual(find_swefarm(), installed)

    def test_a_missing_command_is_an_error_with_a_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            program = programs(folder)
            with mock.patch.dict(os.environ, {"SWEFARM_BIN": str(program)}):
                self.assertEqual(find_swefarm(), program)
            with self.assertRaisesRegex(FileNotFoundError, "is not a program"):
                find_swefarm(f"{folder}/none")


if __name__ == "__main__":
    unittest.main()
