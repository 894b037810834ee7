/** Starts the workers of the farm, each in its own slot. */
import { startCommand, words } from '../src/launchers/commands.ts';
import { TELLS_LISTENING } from '../src/launchers/listens.ts';
import { openSlot, type Slot } from './slot.ts';

type Env = Readonly<Record<string, string>>;

export type WorkerSlot = Omit<Slot<[more?: Env]>, 'replace'> & {
  readonly name: string;
  readonly runtime: 'docker' | 'rootfs';
  /** Worker id of the current process. */
  id(): string;
  ready(): Promise<void>;
  /** Kills the worker with SIGKILL, and starts another one after a second. */
  replace(more?: Env): Promise<void>;
  /** Ends of processes that the slot neither killed nor drained. */
  readonly surprises: readonly string[];
};

const SCHEDULER_MS = 1_000;

export function createWorkerSlot(
  name: string,
  runtime: WorkerSlot['runtime'],
  concurrency: number,
  env: Env,
): WorkerSlot {
  const surprises: string[] = [];
  const id = (): string => `${name}x${slot.starts()}`;
  const slot: Slot<[more?: Env]> = openSlot((start, more = {}) => {
    const flags = words`run --runtime ${runtime} --concurrency ${concurrency} --worker-id ${name}x${start}
      --node node-${name}`;
    const started = startCommand('swefarm-worker', flags, { ...env, ...TELLS_LISTENING, ...more });
    void started.exit.then((code) => {
      if (!slot.told.has(started)) surprises.push(`${id()} ended by itself with ${code}`);
    });
    return started;
  });
  return {
    ...slot,
    ...{ name, runtime, id, surprises },
    ready: () => slot.current().until(/"msg":"ready"/),
    replace: (more) => slot.replace(SCHEDULER_MS, more),
  };
}
