/** The workers of the farm, each in a place of its own. */
import { startCommand, words } from '../src/launchers/commands.ts';
import { TELLS_LISTENING } from '../src/launchers/listens.ts';
import { openSlot, type Slot } from './slot.ts';

type Env = Readonly<Record<string, string>>;

export type WorkerSlot = Omit<Slot<[more?: Env]>, 'replace'> & {
  readonly name: string;
  readonly runtime: 'docker' | 'rootfs';
  /** Id of the process that has the place now. */
  id(): string;
  ready(): Promise<void>;
  /** kill -9, and a fresh process after a moment. */
  replace(more?: Env): Promise<void>;
  /** Ends of processes that nobody asked for. */
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
