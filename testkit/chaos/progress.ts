/** Follows the progress of the farm: reads all results from the streams, and the rollouts that run now. */
import { type Farm, type LiveRollout, sleep } from '@swefarm/shared';
import type { Seen } from './verdict.ts';

export type Progress = {
  /** All results, in the order of their streams, repetitions included. */
  readonly results: readonly Seen[];
  /** Returns the number of rollouts that have a result. */
  committed(): number;
  has(rolloutId: string): boolean;
  /** Returns the rollouts that run now; [] while Redis does not respond. */
  running(workers: readonly string[]): Promise<LiveRollout[]>;
  runIds(): string[];
  /** Call it after the signal. Reads the results since the last turn. */
  finish(): Promise<void>;
};

const POLL_MS = 250;
const LIST_EVERY = 8;

/** Reads until the signal aborts, and continues after outages of Redis. */
export function followProgress(view: Farm, signal: AbortSignal): Progress {
  const results: Seen[] = [];
  const ids = new Set<string>();
  const cursors = new Map<string, string>();
  const readTurn = async (turn: number): Promise<void> => {
    if (turn % LIST_EVERY === 0)
      for (const { run_id } of await view.runs.list()) if (!cursors.has(run_id)) cursors.set(run_id, '0');
    for (const [runId, cursor] of cursors) {
      const batch = await view.results.read(runId, cursor, { patienceMs: 1_000 });
      cursors.set(runId, batch.last_id);
      for (const { result } of batch.results) {
        results.push(result);
        ids.add(result.rollout_id);
      }
    }
  };
  const read = async (): Promise<void> => {
    for (let turn = 0; !signal.aborted; turn++) {
      // A turn fails while Redis does not respond. The next turn reads from the same cursor.
      await readTurn(turn).catch(() => undefined);
      await sleep(POLL_MS);
    }
  };
  const reading = read();
  return {
    results,
    committed: () => ids.size,
    has: (rolloutId) => ids.has(rolloutId),
    running: (workers) => view.live.running(workers).catch(() => []),
    runIds: () => [...cursors.keys()],
    async finish() {
      await reading;
      await readTurn(0);
    },
  };
}
