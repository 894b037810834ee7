/** What the farm has done so far, read beside it: every result as its stream has it, and what runs where. */
import { type Farm, type LiveRollout, sleep } from '@swefarm/shared';
import type { Seen } from './verdict.ts';

export type Progress = {
  /** All results, in the order of their streams, repetitions included. */
  readonly results: readonly Seen[];
  /** Grows with each result that is new. */
  committed(): number;
  has(rolloutId: string): boolean;
  /** Where rollouts are now; [] while Redis is away. */
  running(workers: readonly string[]): Promise<LiveRollout[]>;
  runIds(): string[];
  /** After the signal: reads what was committed since the last turn. */
  finish(): Promise<void>;
};

const POLL_MS = 250;
const LIST_EVERY = 8;

/** Reads until the signal ends it. Outages are waited for. */
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
      // While Redis is away a turn fails, as planned: the next one reads on from the same result.
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
