/**
 * Watches the sandboxes of one worker in which external agents work, from this machine and as root: the time from the start of a program
 * to its first request, the resources of its processes, and what must be removed when the worker has stopped.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const EVERY_MS = 200;
/** USER_HZ: the ticks of a second in /proc/PID/stat. */
const TICKS = 100;
/** A connection in /proc/PID/net/tcp between two ports of 127.0.0.1: to the endpoint, because the sandbox has no other server. */
const CONNECTED = /: 0100007F:[0-9A-F]{4} 0100007F:[0-9A-F]{4} 01 /;
/** Mount point of an agent's bundle in its sandbox. */
const BUNDLE = /\/opt\/swefarm\/agents\/([^/ ]+)/;

/**
 * `startSeconds`: from the start of the program to its first connection to the endpoint. `cpuSeconds`, `peakMib`: of the program and its
 * descendants, without memory of files. `interfaces`: network interfaces of the sandbox.
 */
export type Used = { startSeconds: number; cpuSeconds: number; peakMib: number; interfaces: string };

type Sandbox = {
  agent: string;
  startedAt: number | null;
  askedAt: number | null;
  ticksBefore: number;
  ticks: number;
  peakKib: number;
  interfaces: string;
  groups: Set<string>;
};

export type Watched = Disposable & {
  /** Throws an error if no program of this agent asked the endpoint. */
  used(agent: string): Used;
  /** Number of programs that have asked the endpoint so far. */
  asking(): number;
  /** Returns the existing processes, mounts, sockets and control groups of the worker and its sandboxes. */
  left(): string[];
};

/** Starts to watch. @param folder of the worker's scratch and state @param worker its id, which its containers have as a label */
export function watchAgents(folder: string, worker: string): Watched {
  const sandboxes = new Map<string, Sandbox | null>();
  /** Containers, and whether they belong to the worker. */
  const containers = new Map<string, boolean>();
  const isOwn = (text: string): boolean =>
    text.includes(folder) || [...containers].some(([id, own]) => own && text.includes(id));
  const look = (): void => {
    for (const [namespace, pids] of processesByNamespace()) {
      const known = sandboxes.get(namespace);
      // The kernel reuses the number of a namespace, so a sandbox ends when its mark disappears.
      const mounts = read(pids[0], 'mountinfo');
      const [, container] = /\/containers\/([0-9a-f]{64})\//.exec(mounts) ?? [];
      if (container && !containers.has(container)) containers.set(container, workerOf(container) === worker);
      const [, agent] = BUNDLE.exec(mounts) ?? [];
      if (!agent || !isOwn(mounts)) continue;
      const sandbox = known?.agent === agent ? known : newSandbox(agent);
      sandboxes.set(namespace, sandbox);
      observe(sandbox, pids);
    }
  };
  const timer = setInterval(look, EVERY_MS);
  const all = (): Sandbox[] => [...sandboxes.values()].filter((one) => one !== null);
  return {
    used(agent) {
      const found = all().find((one) => one.agent === agent);
      if (!found?.startedAt || !found.askedAt) throw new Error(`no program of ${agent} was seen to ask`);
      return {
        startSeconds: (found.askedAt - found.startedAt) / 1000,
        cpuSeconds: (found.ticks - found.ticksBefore) / TICKS,
        peakMib: Math.round(found.peakKib / 1024),
        interfaces: found.interfaces,
      };
    },
    asking: () => all().filter(({ askedAt }) => askedAt !== null).length,
    left() {
      const owned = processes().filter((pid) =>
        ['mountinfo', 'environ'].some((file) => isOwn(read(pid, file))),
      );
      const lines = (path: string) => readFileSync(path, 'utf8').split('\n').filter(isOwn);
      return [
        ...owned.map((pid) => `process ${pid}: ${read(pid, 'cmdline').replaceAll('\0', ' ').slice(0, 200)}`),
        ...lines('/proc/self/mountinfo').map((line) => `mount: ${line}`),
        ...lines('/proc/net/unix').map((line) => `socket: ${line}`),
        ...all().flatMap(({ groups }) => [...groups].filter(existsSync).map((group) => `group: ${group}`)),
      ];
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

const newSandbox = (agent: string): Sandbox => ({
  ...{ agent, startedAt: null, askedAt: null, ticksBefore: 0, ticks: 0, peakKib: 0, interfaces: '' },
  groups: new Set(),
});

function observe(sandbox: Sandbox, pids: readonly string[]): void {
  const ticks = sum(pids.map(ticksOf));
  const program = pids.find((pid) => BUNDLE.test(read(pid, 'cmdline')));
  if (!program) {
    if (sandbox.startedAt === null) sandbox.ticksBefore = ticks;
    return;
  }
  sandbox.startedAt ??= performance.now();
  sandbox.ticks = Math.max(sandbox.ticks, ticks);
  sandbox.peakKib = Math.max(sandbox.peakKib, sum(pids.map(ownKib)));
  if (CONNECTED.test(read(program, 'net/tcp'))) sandbox.askedAt ??= performance.now();
  sandbox.interfaces ||= [...read(program, 'net/dev').matchAll(/^\s*([^\s:|]+):/gm)]
    .map(([, name]) => name)
    .join();
  for (const [, names, path] of read(program, 'cgroup').matchAll(/^\d+:([^:]*):(.+)$/gm)) {
    const base = join(
      '/sys/fs/cgroup',
      names === '' && existsSync('/sys/fs/cgroup/unified') ? 'unified' : (names ?? ''),
    );
    if (/docker|swefarm/.test(path ?? '')) sandbox.groups.add(join(base.replace('name=', ''), path ?? ''));
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const processes = (): string[] => readdirSync('/proc').filter((name) => /^\d+$/.test(name));

/** Returns a file of a process; empty when the process has ended. */
function read(pid: string | undefined, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

function processesByNamespace(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const pid of processes()) {
    const namespace = namespaceOf(pid);
    if (namespace !== OUTSIDE && namespace !== '')
      found.set(namespace, [...(found.get(namespace) ?? []), pid]);
  }
  return found;
}

function namespaceOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return '';
  }
}
const OUTSIDE = namespaceOf('self');

/** Returns the CPU time of a process and of its children that have ended, in ticks. */
function ticksOf(pid: string): number {
  const fields = read(pid, 'stat')
    .replace(/^.*\) /s, '')
    .split(' ');
  return sum(fields.slice(11, 15).map(Number));
}

const ownKib = (pid: string): number =>
  sum([...read(pid, 'status').matchAll(/^Rss(?:Anon|Shmem):\s+(\d+)/gm)].map(([, kib]) => Number(kib)));

function workerOf(container: string): string {
  const format = '{{index .Config.Labels "swefarm.worker"}}';
  return spawnSync('docker', ['inspect', '--format', format, container], { encoding: 'utf8' }).stdout.trim();
}
