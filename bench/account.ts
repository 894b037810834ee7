/**
 * Measures CPU time in seconds of user and system time: of a process and its threads from /proc, of the engine's daemons and containers
 * from control groups. Only differences between two samples are meaningful.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sum } from './statistics.ts';

/** Kernel's unit of times in /proc (USER_HZ): 100 a second on every Linux that Node runs on. */
const TICKS = 100;
const CGROUPS = '/sys/fs/cgroup';

/** CPU seconds since a process started. */
export type ProcessTimes = {
  main: number;
  /** The other threads of the process, including ended ones. */
  threads: number;
  /** All descendants, living and ended. */
  children: number;
};

/** Reads the times of a process. Throws when it has ended. */
export function processTimes(pid: number): ProcessTimes {
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = timesIn(`/proc/${pid}/stat`);
  const [mainUser = 0, mainSystem = 0] = timesIn(`/proc/${pid}/task/${pid}/stat`);
  const main = mainUser + mainSystem;
  const living = sum(descendantsOf(pid).flatMap(timesOfLiving));
  return { main, threads: user + system - main, children: childUser + childSystem + living };
}

/** Returns the times of a process; [] when the process has ended, because its parent then counts its times. */
function timesOfLiving(pid: number): number[] {
  try {
    return timesIn(`/proc/${pid}/stat`);
  } catch {
    return [];
  }
}

/** Time between two samples of memory. Reading the memory of many processes needs CPU. */
const SAMPLE_MS = 500;

/**
 * Samples the memory of a process and its descendants until disposal. `peakMib` returns the largest sample in MiB. Pages that several
 * processes share count once.
 */
export function samplePeakMemory(pid: number): Disposable & { peakMib(): number } {
  let peak = 0;
  const sample = (): void => {
    const kib = sum([pid, ...descendantsOf(pid)].map(proportionalKib));
    peak = Math.max(peak, kib / 1024);
  };
  const timer = setInterval(sample, SAMPLE_MS);
  sample();
  return {
    peakMib: () => peak,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** Returns the proportional set size of a process; 0 when it has ended. */
function proportionalKib(pid: number): number {
  try {
    return Number(/^Pss: +(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function descendantsOf(pid: number): number[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap(describe);
  const found = [pid];
  for (const parent of found) found.push(...all.filter((one) => one.parent === parent).map((one) => one.pid));
  return found.slice(1);
}

/** Returns utime, stime, cutime and cstime of a stat file in seconds; see proc(5). Throws when the file does not exist. */
function timesIn(file: string): number[] {
  return fieldsOf(file)
    .slice(11, 15)
    .map((ticks) => Number(ticks) / TICKS);
}

/** Returns the fields after the name, which may contain spaces and brackets. */
function fieldsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

export type EngineTimes = {
  /** dockerd, containerd, and the shims and runc that they start. */
  daemons: number;
  /** All containers of the engine. */
  containers: number;
};

export type EngineAccount = Disposable & { read(): EngineTimes };

/**
 * Moves the engine's daemons into a new control group, which also counts the processes that they start from now on. Disposal moves them
 * back. Returns a text with the reason if this is not possible.
 */
export function openEngineAccount(): EngineAccount | string {
  const version1 = existsSync(join(CGROUPS, 'cpuacct'));
  const root = version1 ? join(CGROUPS, 'cpuacct') : CGROUPS;
  const containers = join(root, 'docker');
  if (!existsSync(containers)) return `the containers have no common control group ${containers}`;
  const daemons = engineDaemons();
  if (daemons.length === 0) return 'no dockerd runs in this process namespace';
  const folder = join(root, `swefarm-bench-${process.pid}`);
  const before = daemons.map((pid) => ({ pid, group: groupOf(pid, version1) }));
  try {
    mkdirSync(folder);
    for (const pid of daemons) writeFileSync(join(folder, 'cgroup.procs'), String(pid));
  } catch (error) {
    return `no control group can be made: ${(error as Error).message}`;
  }
  return {
    read: () => ({
      daemons: usageOf(folder, version1),
      containers: usageOf(containers, version1),
    }),
    [Symbol.dispose]() {
      const own = new Map(before.map(({ pid, group }) => [pid, group]));
      const home = before[0]?.group ?? '/';
      // Processes that a daemon starts meanwhile are in the group too.
      for (let tries = 0; tries < 100 && existsSync(folder); tries++) {
        for (const pid of processesIn(folder)) moveTo(join(root, own.get(pid) ?? home), pid);
        removeEmpty(folder);
      }
    },
  };
}

/** Returns the CPU seconds of a control group and all groups below it, including removed ones. */
function usageOf(folder: string, version1: boolean): number {
  if (version1) return Number(readFileSync(join(folder, 'cpuacct.usage'), 'utf8')) / 1e9;
  const text = readFileSync(join(folder, 'cpu.stat'), 'utf8');
  return Number(/^usage_usec (\d+)$/m.exec(text)?.[1]) / 1e6;
}

const processesIn = (folder: string): number[] =>
  readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);

/** Moves a process to a control group. Ignores a process that has ended. */
function moveTo(folder: string, pid: number): void {
  try {
    writeFileSync(join(folder, 'cgroup.procs'), String(pid));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
  }
}

function groupOf(pid: number, version1: boolean): string {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n');
  const line = lines.find((one) =>
    version1 ? /^\d+:([^:]*,)?cpuacct(,[^:]*)?:/.test(one) : one.startsWith('0::'),
  );
  return line?.slice(line.indexOf(':', line.indexOf(':') + 1) + 1) ?? '/';
}

/** Returns the pids of dockerd and of the containerd that it started, or else of the machine's containerd. */
function engineDaemons(): number[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap(describe);
  const docker = all.filter(({ name }) => name === 'dockerd');
  const runtimes = all.filter(({ name }) => name === 'containerd');
  const own = runtimes.filter(({ parent }) => docker.some(({ pid }) => pid === parent));
  const used = own.length > 0 ? own : runtimes.filter(({ parent }) => parent === 1);
  return docker.length === 0 ? [] : [...docker, ...used].map(({ pid }) => pid);
}

/** Describes a process; [] when it has ended. */
function describe(id: string): { pid: number; name: string; parent: number }[] {
  try {
    const name = readFileSync(`/proc/${id}/comm`, 'utf8').trim();
    return [{ pid: Number(id), name, parent: Number(fieldsOf(`/proc/${id}/stat`)[1]) }];
  } catch {
    return [];
  }
}
