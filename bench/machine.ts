/** Describes the machine on which the figures are measured. */
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { engine } from './engine.ts';

export type Machine = {
  cores: number;
  cpu: string;
  memory_gib: number;
  os: string;
  kernel: string;
  node: string;
  /** Null when no engine answers. */
  engine: string | null;
  /** Load average of the last minute before the first measurement: other work on the machine slows everything. */
  load_average: number;
};

export async function describeMachine(): Promise<Machine> {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    memory_gib: Math.round(totalmem() / 1024 ** 3),
    os: /^PRETTY_NAME="?([^"\n]*)/m.exec(osRelease())?.[1] ?? process.platform,
    kernel: release(),
    node: process.version,
    engine: await engine()
      .version()
      .then(
        ({ Version }) => Version,
        () => null,
      ),
    load_average: loadAverage(),
  };
}

export const loadAverage = (): number => Number((loadavg()[0] ?? 0).toFixed(2));

function osRelease(): string {
  try {
    return readFileSync('/etc/os-release', 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

/** Returns the CPU seconds of all processes and the kernel since the start of this machine. */
export function machineCpuSeconds(): number {
  const [user, nice, system, , , irq, softirq] = (
    /^cpu +(.*)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? ''
  )
    .split(' ')
    .map(Number);
  // Linux reports these times in hundredths of a second, independent of its own tick.
  return [user, nice, system, irq, softirq].reduce((sum: number, ticks) => sum + (ticks ?? 0), 0) / 100;
}
