/**
 * Where CPU time goes on this machine, in seconds of user and system time: a process and its threads from /proc, the engine's daemons and the
 * containers from the kernel's control groups. Only differences between two samples mean something.
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
  /** Its other threads, those that ended too. */
  threads: number;
  /** Its children, and theirs: those that ended, and those that live. */
  children: number;
};

/** Throws when the process is gone. */
export function processTimes(pid: number): ProcessTimes {
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = timesIn(`/proc/${pid}/stat`);
  const [mainUser = 0, mainSystem = 0] = timesIn(`/proc/${pid}/task/${pid}/stat`);
  const main = mainUser + mainSystem;
  const living = sum(descendantsOf(pid).flatMap(timesOfLiving));
  return { main, threads: user + system - main, children: childUser + childSystem + living };
}

/** Nothing for a process that has ended meanwhile: its parent has its times. */
function timesOfLiving(pid: number): number[] {
  try {
    return timesIn(`/proc/${pid}/stat`);
  } catch {
    return [];
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

/** utime, stime, cutime and cstime of a stat file, in seconds; see proc(5). Throws when it is gone. */
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
 * Puts the engine's daemons into a control group of their own, where what they start from now on is counted too; disposing it returns them.
 * A text says why it cannot be done.
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
      // What a daemon starts meanwhile is in the group too.
      for (let tries = 0; tries < 100 && existsSync(folder); tries++) {
        for (const pid of processesIn(folder)) moveTo(join(root, own.get(pid) ?? home), pid);
        removeEmpty(folder);
      }
    },
  };
}

/** CPU seconds of a control group and all below it, those that are gone too. */
function usageOf(folder: string, version1: boolean): number {
  if (version1) return Number(readFileSync(join(folder, 'cpuacct.usage'), 'utf8')) / 1e9;
  const text = readFileSync(join(folder, 'cpu.stat'), 'utf8');
  return Number(/^usage_usec (\d+)$/m.exec(text)?.[1]) / 1e6;
}

const processesIn = (folder: string): number[] =>
  readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);

/** A process that has ended meanwhile is in no group. */
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

/** dockerd, and the containerd that it started; else the machine's own containerd. */
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

/** Nothing for a process that has ended meanwhile. */
function describe(id: string): { pid: number; name: string; parent: number }[] {
  try {
    const name = readFileSync(`/proc/${id}/comm`, 'utf8').trim();
    return [{ pid: Number(id), name, parent: Number(fieldsOf(`/proc/${id}/stat`)[1]) }];
  } catch {
    return [];
  }
}
