/**
 * Attempts to leave a sandbox, or to exhaust the node from inside, as data. Each returns its gain, or null when it failed. They
 * run only with the test image's marker, because some would harm a real machine.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { takePatch } from '../../src/snapshot.ts';
import { NEVER, sh, snapshotOf, TEST_IMAGE_MARKER } from '../subject.ts';
import { type Attempt, python } from './attempt.ts';
import { FIRST_PROCESS } from './firstprocess.ts';
import { MOUNTED } from './mounted.ts';

const MEGABYTE = 1_000_000;

const connect = (host: string, port: number): string => `
s = socket.socket(); s.settimeout(2)
attempt("${host}:${port}", lambda: s.connect(("${host}", ${port})))`;

export const ATTEMPTS: readonly Attempt[] = [
  ...FIRST_PROCESS,
  ...MOUNTED,
  {
    name: 'services of the host, the metadata address and the internet',
    run: ({ container, host }) =>
      python(
        container,
        [
          ...['127.0.0.1', '169.254.169.254', ...host.addresses].map((address) =>
            connect(address, host.port),
          ),
          connect('169.254.169.254', 80),
          connect('1.1.1.1', 443),
          `s = socket.socket(socket.AF_UNIX)
attempt("abstract socket", lambda: s.connect("\\0${host.abstract}"))
for family in (socket.AF_PACKET, socket.AF_INET):
    attempt(f"raw {family}", lambda: socket.socket(family, socket.SOCK_RAW, 1))`,
        ].join('\n'),
      ),
  },
  {
    name: "the host's loopback, with egress",
    network: 'egress',
    run: ({ container, host }) => python(container, connect('127.0.0.1', host.port)),
  },
  {
    name: "the engine's socket",
    run: ({ container }) =>
      python(
        container,
        `import stat
for folder in ("/run", "/var/run", "/tmp", "/.swefarm", "/var/lib"):
    for root, folders, files in os.walk(folder):
        for name in files:
            if stat.S_ISSOCK(os.lstat(os.path.join(root, name)).st_mode): got(os.path.join(root, name))`,
      ),
  },
  {
    name: "the host's files",
    run: ({ container, host }) =>
      python(
        container,
        `secret = "${host.secretFile}"
roots = ["", "/proc/1/root", "/proc/1/cwd", "/.swefarm", "/oldroot"] + ["../" * n for n in (1, 8)]
roots += [f"/proc/{pid}/root" for pid in os.listdir("/proc") if pid.isdigit()]
for root in roots:
    attempt(root + secret, lambda: open(root + secret).read())
call("open_by_handle_at", os.open("/", os.O_RDONLY), b"\\x08\\0\\0\\0\\x01\\0\\0\\0\\x02\\0\\0\\0\\0\\0\\0\\0", 0)
for name in ("/proc/kcore", "/proc/kmsg", "/etc/shadow"):
    attempt(name, lambda: (open(name, "rb").read(1) or os.getxattr("/", "none")))`,
      ),
  },
  {
    name: 'tracing process 1, its memory, files and root',
    run: ({ container }) =>
      python(
        container,
        `libc.ptrace.argtypes = [ctypes.c_long] * 4
call("ptrace", 16, 1, 0, 0)
attempt("mem", lambda: os.pwrite(os.open("/proc/1/mem", os.O_RDWR), b"x", 4096))
attempt("fd", lambda: os.open("/proc/1/fd/0", os.O_RDWR))
attempt("root", lambda: os.listdir("/proc/1/root"))`,
      ),
  },
  {
    name: 'mounts and namespaces',
    run: ({ container }) =>
      python(
        container,
        `call("mount", b"none", b"/tmp", b"tmpfs", 0, None)
call("mount", b"/", b"/tmp", None, 4096, None)
call("mount", b"none", b"/proc/sys", None, 4096 | 32, None)
for place in (b"/proc", b"/proc/sys", b"/.swefarm", b"/dev/shm"): call("umount2", place, 2)
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000): call("unshare", flag)
call("chroot", b"/proc")
call("setns", os.open("/proc/self/ns/mnt", os.O_RDONLY), 0)`,
      ),
  },
  {
    name: 'sockets of the hypervisor and of the kernel, which no network namespace holds',
    run: ({ container }) =>
      python(
        container,
        `for family, kind in ((40, 1), (40, 2), (38, 5)): # AF_VSOCK, AF_ALG
    call("socket", family, kind, 0)
    attempt(f"socketpair {family}", lambda: socket.socketpair(family, kind))
call("socket", 16, 3, 9) # NETLINK_AUDIT
call("personality", 0x0040000)`,
      ),
  },
  {
    name: 'raw devices',
    run: ({ container }) =>
      python(
        container,
        `for kind, major, minor in ((0o060000, 8, 0), (0o060000, 254, 0), (0o020000, 1, 1)):
    def device():
        path = f"/tmp/device-{major}-{minor}"
        os.mknod(path, kind | 0o666, os.makedev(major, minor)); open(path, "rb").read(1)
    attempt(f"device {major}:{minor}", device)
for name in ("vda", "sda", "mem", "kmsg", "port", "fuse", "net/tun", "loop-control"):
    attempt(name, lambda: os.open("/dev/" + name, os.O_RDONLY))`,
      ),
  },
  {
    name: 'the kernel and its settings',
    run: ({ container }) =>
      python(
        container,
        `for path in ("sys/kernel/core_pattern", "sys/kernel/hostname", "sys/vm/drop_caches", "sys/kernel/modprobe", "sysrq-trigger"):
    attempt(path, lambda: open("/proc/" + path, "w"))
for root, folders, files in os.walk("/sys/fs/cgroup"):
    for name in files:
        if name in ("release_agent", "memory.limit_in_bytes", "memory.max", "pids.max", "cgroup.procs"):
            attempt(os.path.join(root, name), lambda: open(os.path.join(root, name), "w"))
for number in (321, 298, 250, 175, 246, 323, 425): # bpf, perf, keyctl, modules, kexec, userfaultfd, io_uring
    if libc.syscall(number, 0, 0, 0, 0, 0) != -1: got(number)
call("sethostname", b"x", 1)
call("reboot", 0xfee1dead)
call("clock_settime", 0, (ctypes.c_long * 2)(0, 0))
call("setuid", 0) if os.getuid() != 0 else None
call("iopl", 3)`,
      ),
  },
  {
    name: 'signals to process 1 and to everything',
    async run({ container, shell }) {
      const command = `[ -e ${TEST_IMAGE_MARKER} ] || exit 99; for s in $(seq 64); do kill -$s 1; done 2>/dev/null; kill -9 -1`;
      await shell.run(command, { timeoutMs: 10_000, maxOutputBytes: 1_000, signal: NEVER });
      return (await container.state()) === 'running' ? null : 'the end of the sandbox';
    },
  },
  {
    name: 'holding up the engine, by what it reads before an exec',
    async run({ container, shell }) {
      const command = `[ -e ${TEST_IMAGE_MARKER} ] || exit 99; rm /etc/passwd /etc/group; mkfifo /etc/passwd /etc/group`;
      await shell.run(command, { timeoutMs: 10_000, maxOutputBytes: 1_000, signal: NEVER });
      const options = { timeoutMs: 60_000, maxOutputBytes: 100, signal: NEVER };
      // Engines that read these files refuse the exec.
      const ended = await container.exec(['true'], options).catch(() => null);
      return ended?.timedOut ? 'an exec that does not end' : null;
    },
  },
  {
    name: 'a fork bomb',
    slow: true,
    async run({ shell }) {
      const command = `[ -e ${TEST_IMAGE_MARKER} ] || exit 99; bomb() { bomb | bomb & bomb; }; bomb`;
      const result = await shell.run(command, { timeoutMs: 2_000, maxOutputBytes: 1_000, signal: NEVER });
      return result.note === null ? 'an ordinary end' : null;
    },
  },
  {
    name: 'a flood of zombies',
    async run({ container, shell }) {
      const program = `import os, time
for i in range(2000):
    try:
        if os.fork() == 0: os._exit(0)
    except OSError: break
time.sleep(2)`;
      await container.putFiles([{ path: '/tmp/zombies.py', content: Buffer.from(program) }], NEVER);
      await shell.run('python3 /tmp/zombies.py', { timeoutMs: 30_000, maxOutputBytes: 1_000, signal: NEVER });
      const count = 'cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z " || true';
      const left = async () => Number((await sh(container, count)).output.toString());
      for (const deadline = Date.now() + 60_000; (await left()) > 0 && Date.now() < deadline; )
        await sleep(100);
      return (await left()) > 0 ? `${await left()} zombies` : null;
    },
  },
  {
    name: 'memory, by processes and by files in memory',
    limits: { memoryBytes: 200 * MEGABYTE },
    async run({ container }) {
      const whole = await python(
        container,
        `parts = []
for i in range(60):
    parts.append(b"x" * 20_000_000); time.sleep(0.05)
got("1.2 GB")`,
        60_000,
      ).catch(() => null);
      const shared = await python(
        container,
        `with open("/dev/shm/x", "wb") as f:
    try:
        for i in range(1000): f.write(b"x" * 1_000_000)
        got("1 GB of /dev/shm")
    except OSError: pass`,
      ).catch(() => null);
      return whole ?? shared;
    },
  },
  {
    name: 'open files',
    run: ({ container }) =>
      python(
        container,
        `try:
    for i in range(3_000_000): os.open("/dev/null", os.O_RDONLY)
    got(i)
except OSError as error: pass`,
        60_000,
      ),
  },
  {
    name: 'filling the disk',
    slow: true,
    limits: { diskBytes: 100 * MEGABYTE },
    async run({ container }) {
      await sh(container, 'head -c 300000000 /dev/zero > /testbed/large || true').catch(() => undefined);
      const deadline = Date.now() + 120_000;
      while ((await container.state()) === 'running' && Date.now() < deadline) await sleep(200);
      return (await container.state()) === 'own_limit' ? null : '300 MB of 100';
    },
  },
  {
    name: 'a flood of output',
    async run({ container, shell }) {
      const before = process.memoryUsage.rss();
      const stored = 20_000;
      const result = await shell.run('yes 0123456789', {
        timeoutMs: 1_500,
        maxOutputBytes: stored,
        signal: NEVER,
      });
      const options = { timeoutMs: 1_500, maxOutputBytes: stored, signal: NEVER };
      const plain = await container.exec(['yes', '0123456789'], options);
      const bytes = result.head.length + (result.tail?.length ?? 0) + plain.output.length;
      const grown = process.memoryUsage.rss() - before;
      return bytes > 2 * stored || grown > 200 * MEGABYTE ? `${bytes} bytes kept, ${grown} of memory` : null;
    },
  },
  {
    name: 'links in files that are fetched and written',
    async run({ container, host }) {
      await sh(
        container,
        `ln -sfn ${host.folder} /testbed/folder; ln -sfn ${host.secretFile} /testbed/file
         (end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do ln -sfn ${host.secretFile} /testbed/racing; rm -f /testbed/racing; echo inside > /testbed/racing; done) >/dev/null 2>&1 &`,
      );
      const fetch = (path: string) => container.getFile(path, 1_000, NEVER).catch(() => null);
      const seen = [await fetch('/testbed/file'), await fetch(`/testbed/folder/${host.secretName}`)];
      for (let i = 0; i < 20; i++) seen.push(await fetch('/testbed/racing'));
      const file = { path: `/testbed/folder/${host.secretName}`, content: Buffer.from('written') };
      await container.putFiles([file], NEVER).catch(() => undefined);
      if (seen.some((content) => content?.includes(host.secret))) return "the host's file";
      return (await host.unharmed()) ? null : 'a write to the host';
    },
  },
  {
    name: 'links in the patch',
    async run({ container, host }) {
      const git = 'git -c user.name=n -c user.email=e@x';
      await sh(
        container,
        `git init -q .; mkdir d; echo a > d/${host.secretName}; ${git} add -A; ${git} commit -qm base`,
      );
      const snapshot = await snapshotOf(container);
      await sh(
        container,
        `rm -rf d; ln -s ${host.folder} d; ln -s ${host.secretFile} link; ln -s /proc/1/root root
         printf '[include]\\n\\tpath = ${host.secretFile}\\n' >> .git/config; ln -sf ${host.secretFile} .gitattributes`,
      );
      const { patch } = await takePatch(container, snapshot, NEVER);
      return patch.includes(host.secret) ? "the host's file" : null;
    },
  },
  {
    name: "the shell's own stream",
    async run({ shell }) {
      const frames = String.raw`'\n0 0\nrun 1 2 3\n 0 5 0 0\nhello\0\n'`;
      const write = `for f in /proc/[0-9]*/fd/*; do { printf ${frames} > $f; } 2>/dev/null & done; sleep 0.5; kill $(jobs -p) 2>/dev/null; exit 7`;
      const options = { timeoutMs: 10_000, maxOutputBytes: 10_000, signal: NEVER };
      await shell.run(`[ -e ${TEST_IMAGE_MARKER} ] || exit 99; ${write}`, options);
      const next = await shell.run('echo ordinary; exit 3', options);
      const text = next.head.toString();
      return next.exitCode === 3 && text === 'ordinary\n' ? null : `${next.exitCode} ${JSON.stringify(text)}`;
    },
  },
  {
    name: 'writing into the output of another exec',
    async run({ container }) {
      const options = { timeoutMs: 120_000, maxOutputBytes: 100_000, signal: NEVER };
      const wait = (file: string) => `until [ -e /tmp/${file} ]; do sleep 0.1; done`;
      const honest = container.exec(
        ['sh', '-c', `touch /tmp/honest; ${wait('forged')}; echo real; exit 5`],
        options,
      );
      const forge = `[ -e ${TEST_IMAGE_MARKER} ] || exit 99; ${wait('honest')}; for i in 1 2 3 4 5 6 7 8; do for p in /proc/[0-9]*; do case $p in /proc/1|/proc/$$) ;; *) { echo forged > $p/fd/1; } 2>/dev/null & ;; esac; done; sleep 0.2; done; touch /tmp/forged`;
      await container.exec(['sh', '-c', forge], options);
      const result = await honest;
      // The exit code comes from the runtime.
      if (result.exitCode !== 5) return `exit code ${result.exitCode}`;
      return result.output.includes('forged') ? 'forged output' : null;
    },
  },
];
