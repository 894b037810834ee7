"""
Drives sandboxes with the package `swefarm` while the test causes faults: sandbox.py ROW.json. Prints the name of each fault that it waits
for, and exits with 0 when every call ended as documented.
"""

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from swefarm import FarmRefusal, FileError, Sandbox, SandboxEnded, SandboxLost, Shell
from swefarm.sandbox import hearts

ROW = json.loads(Path(sys.argv[1]).read_text())


def raised(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def fault(name):
    print(name, flush=True)


def files(box):
    data = os.urandom(13 * 1024**2 + 7)
    box.write("/tmp/deep/large", data, 0o750)
    assert box.run("stat -c '%a %s' large; ls -A | wc -l", cwd="/tmp/deep").text == f"750 {len(data)}\n1\n"
    assert raised(FileError, lambda: box.read("/tmp/deep/large")).code == "too_large"
    assert box.run("tail -c 3000000 /tmp/deep/large", max_bytes=3_000_000).data == data[-3_000_000:]
    box.write("/tmp/empty", b"")
    assert box.read("/tmp/empty") == b""
    box.run("ln -s /etc/passwd /tmp/link; mkfifo /tmp/fifo")
    for path in ("/tmp/link", "/tmp/fifo", "/none"):
        assert raised(FileError, lambda: box.read(path)).code == "not_a_file", path
    assert raised(FileError, lambda: box.write("/tmp", "")).code == "failed"
    assert raised(FarmRefusal, lambda: box.read("/tmp/../etc/shadow")).field == "path"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a b").mkdir()
        (Path(folder) / "a b/tool").write_text("#!/bin/sh\necho ran\n")
        (Path(folder) / "a b/tool").chmod(0o755)
        box.upload(folder, "/opt/up load")
        assert box.run("'/opt/up load/a b/tool'").text == "ran\n"
        box.download("/opt/up load/a b/tool", Path(folder) / "back/tool")
        assert (Path(folder) / "back/tool").read_bytes() == (Path(folder) / "a b/tool").read_bytes()


def outputs(box):
    flood = box.run("head -c 100000000 /dev/zero; echo end >&2", max_bytes=1000)
    assert (flood.bytes, flood.truncated, len(flood.data)) == (100_000_004, True, 1000), flood.bytes
    assert flood.text.endswith("\0end\n") and "99999004 bytes left out" in flood.text
    assert box.run("printf '\\377\\n'").data == b"\xff\n"
    assert box.run("true", cwd="/none").exit_code == 1
    late = box.run("echo begun; sleep 60", timeout_s=0.5)
    assert (late.timed_out, late.exit_code, late.text) == (True, None, "begun\n")
    shell = Shell(box, cwd="/tmp")
    shell.run("cd /usr; export A='q\"'; B=(1 2); f() { echo f$1; }; set -f")
    assert shell.run("pwd; echo \"$A ${B[1]}\"; f 3").text == '/usr\nq" 2\nf3\n'
    # Threads share a sandbox; their calls have different numbers.
    told = []
    threads = [threading.Thread(target=lambda n=n: told.append(box.run(f"echo {n}").text)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == [f"{n}\n" for n in range(6)]


with Sandbox.open(ROW, agent={"time_limit": 30}) as box:
    assert box.workdir == "/testbed"
    files(box)
    outputs(box)

    # The gateway dies in the middle of a command, which runs once.
    threading.Timer(1.0, fault, ["gateway"]).start()
    assert box.run("echo x >> /tmp/runs; sleep 6; wc -l < /tmp/runs").text == "1\n"

    # The loop thinks for longer than the time limit and the lease.
    time.sleep(31)
    box.write("/tmp/gold.patch", ROW["patch"])
    assert box.diff() == ""
    assert box.run("git apply /tmp/gold.patch").exit_code == 0
    assert "diff --git" in box.diff()
    verdict = box.submit()
    assert (verdict.judged, verdict.resolved, verdict.reward) == (True, True, 1), verdict
    assert box.submit().result == verdict.result
    assert raised(SandboxEnded, lambda: box.run("true")).end == "submitted"

# A lease without heartbeats, and a sandbox that is closed without a submit.
silent = Sandbox.open(ROW, lease_s=2)
hearts.forget(silent.session_id)
time.sleep(5)
assert raised(SandboxEnded, lambda: silent.run("true")).end == "lease"
with Sandbox.open(ROW) as given_up:
    pass
assert raised(SandboxEnded, lambda: given_up.run("true")).end == "closed"
assert raised(FarmRefusal, lambda: Sandbox.open(instance_id="none")).code == "instance_unknown"

# With the clock `wall`, a pause stops the time limit.
with Sandbox.open(ROW, clock="wall", agent={"time_limit": 6}) as paused:
    paused.pause()
    time.sleep(8)
    assert paused.run("echo on").text == "on\n"
    time.sleep(8)
    assert raised(SandboxEnded, lambda: paused.run("true")).end == "time_limit"

# The worker of the sandbox dies.
lost = Sandbox.open(ROW)
threading.Timer(1.0, fault, ["worker"]).start()
assert raised(SandboxLost, lambda: lost.run("sleep 600")).end == "failed"
assert raised(SandboxLost, lambda: lost.read("/etc/passwd")).end == "failed"
assert lost.submit().judged is False
print("done", flush=True)
