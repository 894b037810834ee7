/** Attempts to end the sandbox by its process 1, which has the commands' uid in every runtime. */
import { NEVER, OPTIONS, TEST_IMAGE_MARKER } from '../subject.ts';
import type { Attempt } from './attempt.ts';

/** Prints `done` at the end, and nothing else when every call was refused or without effect. */
const END_FIRST = `import ctypes, os, resource, signal, sys, threading, time
assert os.path.exists("${TEST_IMAGE_MARKER}")
libc = ctypes.CDLL(None, use_errno=True)
names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
for name in names:
    try: resource.prlimit(1, getattr(resource, name), (1, 1)); print("limit", name, flush=True)
    except (OSError, ValueError): pass
libc.ptrace.argtypes = [ctypes.c_long] * 4
for request in (16, 0x4206):
    if libc.ptrace(request, 1, 0, 0) == 0: print("ptrace", request, flush=True)
class Part(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
junk = ctypes.create_string_buffer(b"\\xff" * 4096)
try: maps = open("/proc/1/maps").read().splitlines()
except OSError: maps = []
for line in maps:
    at = int(line.split("-")[0], 16)
    local, remote = Part(ctypes.addressof(junk), 4096), Part(at, 4096)
    if libc.process_vm_writev(1, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0: print("written", line, flush=True)
    for path in ("/proc/1/mem", "/proc/1/task/1/mem"):
        try: os.pwrite(os.open(path, os.O_RDWR), junk.raw, at)
        except (OSError, OverflowError): pass
for path, text in (("oom_score_adj", "1000"), ("coredump_filter", "0"), ("clear_refs", "1"), ("timerslack_ns", "0"), ("autogroup", "19"), ("comm", "x")):
    try: open("/proc/1/" + path, "w").write(text)
    except OSError: pass
for call in (lambda: os.setpriority(os.PRIO_PROCESS, 1, 19), lambda: os.sched_setaffinity(1, {0}), lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)), lambda: libc.syscall(251, 1, 1, 3 << 13), lambda: os.setpgid(1, 1)):
    try: call()
    except OSError: pass
info = ctypes.create_string_buffer(128)
for number in [n for n in range(1, 65) if n not in (19,)]:
    ctypes.c_int.from_buffer(info, 0).value = number
    ctypes.c_int.from_buffer(info, 8).value = -1
    for call in (lambda: os.kill(1, number), lambda: libc.syscall(234, 1, 1, number), lambda: libc.syscall(129, 1, number, info), lambda: libc.syscall(297, 1, 1, number, info)):
        # USR1 would end this too: it is how the worker ends all others.
        if number == signal.SIGUSR1: continue
        try: call()
        except OSError: pass
end = time.time() + 3
while time.time() < end:
    try: os.kill(1, signal.SIGCHLD)
    except OSError: break
print("done", flush=True)
`;

export const FIRST_PROCESS: readonly Attempt[] = [
  {
    name: 'the end of process 1, by each call that needs no more than its uid',
    async run({ container, shell }) {
      await container.putFiles([{ path: '/tmp/first.py', content: Buffer.from(END_FIRST) }], NEVER);
      const options = { ...OPTIONS, timeoutMs: 30_000 };
      const ended = await shell
        .run('python3 /tmp/first.py', options)
        .catch((error: unknown) => String(error));
      const output = typeof ended === 'string' ? ended : ended.head.toString();
      // An effect on process 1, such as a refused fork, appears only at the next exec.
      await container.exec(['true'], options).catch(() => undefined);
      const state = await container.state();
      if (state !== 'running') return `${state}: ${output}`;
      return output.includes('done') ? null : output;
    },
  },
];
