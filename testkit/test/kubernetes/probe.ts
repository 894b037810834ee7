/** Tests what code in a sandbox can do to a node: a rollout tries it, and its patch has the results. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { conversation, running } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import type { Caller } from './caller.ts';
import { type Cluster, NODE, PORTS } from './cluster.ts';

/** Memory in MiB that a rollout with a limit of 256 MiB allocates. */
const TOO_MUCH = 600;
const SECRET = 'written by the node';

/** Each attempt prints `done`, or why it failed. `hide` keeps the searched names out of the attempt's own command line. */
const attempts = (file: string): string => `
import ctypes, glob, json, os, socket, stat
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result != 0: raise OSError(ctypes.get_errno(), "")
def read(path): return open(path, "rb").read()
def write(path, text): open(path, "w").write(text)
def disk():
    os.mknod("/tmp/disk", 0o660 | stat.S_IFBLK, os.makedev(254, 0))
    os.open("/tmp/disk", os.O_RDWR)
def found(name, word):
    word = word[::-1].encode()
    if not any(word in read(path) for path in glob.glob("/proc/[0-9]*/" + name)): raise OSError(2, "")
tries = {
    "reads a file of the node": lambda: read("${file}"),
    "writes a file of the node": lambda: write("${file}", "x"),
    "opens its disk": disk,
    "mounts": lambda: call(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)),
    "makes users": lambda: call(libc.unshare(0x10000000)),
    "changes its kernel": lambda: write("/proc/sys/kernel/randomize_va_space", "0"),
    "asks its kernel for more": lambda: write("/proc/sysrq-trigger", "h"),
    "sees its kubelet": lambda: found("cmdline", "telebuk"),
    "sees the worker's secrets": lambda: found("environ", "DROWSSAP_SIDER"),
    "reaches Redis": lambda: socket.create_connection(("${NODE}", ${PORTS.redis}), 3),
    "reaches its own loopback": lambda: socket.create_connection(("127.0.0.1", 9400), 3),
}
got = {"users": read("/proc/self/uid_map").split()[1].decode()}
for name, attempt in tries.items():
    try: attempt(); got[name] = "done"
    except Exception as error: got[name] = str(error)
print(json.dumps(got))`;

export type Probe = {
  /** The host user whose rights the sandbox's root user has. */
  users: number;
  /** Names of attempts that succeeded and should have failed. */
  done: string[];
  /** Exit code of a program that exceeded the memory limit of the rollout. */
  filled: number;
};

/** Runs one rollout that fixes the bug and runs these commands. Returns its patch. */
async function patchOf(caller: Caller, commands: string[], image?: string, more?: object): Promise<string> {
  const all = ["sed -i 's/return a - b/return a + b/' calc/ops.py", ...commands];
  const script = conversation(running(...all));
  await using policy = await startScriptedPolicy({ script, host: NODE });
  const run = await caller.submit(policy, 1, image, more);
  const lines = await caller.results(run, 1);
  await caller.expectWhole(lines, 1);
  const artifact = await caller.ask(`/v1/rollouts/${lines[0]?.rollout_id}/artifact`);
  return ((await artifact.json()) as { patch: string }).patch;
}

/** Runs one rollout with all attempts, and returns the results. Throws when an attempt was not made. */
export async function probe(cluster: Cluster, caller: Caller, image?: string): Promise<Probe> {
  const file = join(cluster.folder, 'secret');
  await writeFile(file, SECRET, { mode: 0o600 });
  const fill = `python3 -c 'x = b"x" * (${TOO_MUCH} << 20); import time; time.sleep(15)'`;
  const commands = [
    `python3 - >probe.txt <<'END'${attempts(file)}\nEND`,
    `(${fill}); echo "filled $?" >>probe.txt`,
  ];
  const patch = await patchOf(caller, commands, image);
  const got = JSON.parse(/^\+(\{.*\})$/m.exec(patch)?.[1] ?? '{}') as Record<string, string>;
  const { users, ...tried } = got;
  expect(Object.keys(tried), patch).toHaveLength(11);
  expect(await readFile(file, 'utf8')).toBe(SECRET);
  return {
    users: Number(users),
    done: Object.keys(tried).filter((name) => tried[name] === 'done'),
    filled: Number(/^\+filled (\d+)$/m.exec(patch)?.[1]),
  };
}

/** Returns whether a sandbox with network access reaches the hosts that its worker reaches. */
export async function hasNetwork(caller: Caller, image?: string): Promise<boolean> {
  const reach = `python3 -c 'import socket; socket.create_connection(("${NODE}", ${PORTS.redis}), 5); print("reached")'`;
  const patch = await patchOf(caller, [`${reach} >reached.txt 2>&1`], image, { agent_network: 'egress' });
  return patch.includes('+reached');
}
