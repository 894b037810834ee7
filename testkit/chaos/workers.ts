/** The workers of the farm, each in a place that a fresh process takes when the old one is killed, as a scheduler would. */
import { sleep } from '@swefarm/shared';
import { type Started, startCommand } from '../src/launchers/commands.ts';
import { TELLS_LISTENING, untilListens } from '../src/launchers/listens.ts';

export type WorkerSlot = {
  readonly name: string;
  readonly runtime: 'docker' | 'rootfs';
  /** Id of the process that has the place now. */
  id(): string;
  start(more?: Readonly<Record<string, string>>): void;
  ready(): Promise<void>;
  /** kill -9, and a fresh process after a moment. */
  replace(more?: Readonly<Record<string, string>>): Promise<void>;
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** SIGTERM; the exit code. */
  drain(): Promise<number | string>;
  /** Everything that processes in this place logged. */
  log(): string;
  /** Ends of processes that nobody asked for. */
  readonly surprises: readonly string[];
  kill(): void;
};

const SCHEDULER_MS = 1_000;

export function createWorkerSlot(
  name: string,
  runtime: WorkerSlot['runtime'],
  concurrency: number,
  env: Readonly<Record<string, string>>,
): WorkerSlot {
  const logs: Started[] = [];
  const surprises: string[] = [];
  const awaited = new Set<Started>();
  let current: Started | null = null;
  const id = (): string => `${name}x${logs.length}`;
  const running = (): Started => {
    if (current) return current;
    throw new Error(`${name} was not started`);
  };
  const slot: WorkerSlot = {
    name,
    runtime,
    id,
    surprises,
    start(more = {}) {
      const args = ['run', '--runtime', runtime, '--concurrency', String(concurrency)];
      const names = ['--worker-id', `${name}x${logs.length + 1}`, '--node', `node-${name}`];
      const started = startCommand('swefarm-worker', [...args, ...names], {
        ...env,
        ...TELLS_LISTENING,
        ...more,
      });
      logs.push(started);
      current = started;
      void started.exit.then((code) => {
        if (!awaited.has(started)) surprises.push(`${id()} ended by itself with ${code}`);
      });
    },
    ready: () => running().until(/"msg":"ready"/),
    async replace(more) {
      const old = running();
      awaited.add(old);
      // One that stands still is killed all the same.
      old.kill('SIGKILL');
      await old.exit;
      await sleep(SCHEDULER_MS);
      slot.start(more);
    },
    signal: (signal) => running().kill(signal),
    async drain() {
      const last = running();
      awaited.add(last);
      await untilListens(last);
      last.kill('SIGTERM');
      return await last.exit;
    },
    log: () => logs.map((started) => started.stdout() + started.stderr()).join('\n'),
    kill() {
      if (!current) return;
      awaited.add(current);
      current.kill('SIGKILL');
    },
  };
  return slot;
}
