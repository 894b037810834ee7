/** A worker whose outcomes a test decides. */
import type { Farm, Result } from '@swefarm/shared';
import { madeTrajectory } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { aFailure } from '@swefarm/trajectories/test/result.ts';
import { onTestFinished } from 'vitest';

export type Ending = Partial<Result>;
/** `nth`: position of the rollout in the queue, from 0. */
export type Decide = (nth: number, rolloutId: string) => Promise<Ending> | Ending;

export const judged = (reward: 0 | 1): Ending => ({
  resolved: reward === 1,
  reward,
  reward_row: reward === 1 ? 'resolved' : 'unresolved',
});

/** A rollout that ends at a limit without a reward. */
export const withheld: Ending = {
  resolved: null,
  reward: null,
  reward_row: 'turn_limit',
  exit_status: 'turn_limit',
};

export function failed(name: NonNullable<Result['failure']>['class'], stage = 'policy'): Ending {
  const { outcome, resolved, reward, reward_row, exit_status, failure } = aFailure();
  const told = { ...failure, class: name, stage } as Result['failure'];
  return { outcome, resolved, reward, reward_row, exit_status, failure: told };
}

/** Runs queued rollouts until the test ends, with `length` turns or, for failures, none. `seen`: ids of the begun rollouts, in order. */
export function startPlayer(farm: Farm, decide: Decide, length = 2): { readonly seen: readonly string[] } {
  const seen: string[] = [];
  const begun = new Set<string>();
  const stored = new Set<Promise<void>>();
  let stopped = false;
  const play = async (id: string): Promise<void> => {
    const nth = seen.push(id) - 1;
    const ending = await decide(nth, id);
    if (stopped) return;
    const storing = store(id, nth, ending);
    stored.add(storing);
    await storing;
    stored.delete(storing);
  };
  const store = async (id: string, nth: number, ending: Ending): Promise<void> => {
    const run = await farm.runs.get(id.slice(0, id.indexOf('.')));
    if (run === null) return;
    const turns = ending.failure ? 0 : length;
    await commitRollout(farm, run, id, { turns, ...ending }, null, madeTrajectory(turns, nth));
  };
  const loop = async (): Promise<void> => {
    while (!stopped) {
      const jobs = await farm.queue().getJobs(['prioritized', 'waiting']);
      // Rollouts of one instance are queued in the order of their indices.
      for (const { id } of jobs.toSorted((a, b) => (a.timestamp ?? 0) - (b.timestamp ?? 0))) {
        if (id === undefined || begun.has(id)) continue;
        begun.add(id);
        void play(id);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const running = loop();
  onTestFinished(async () => {
    stopped = true;
    await running;
    await Promise.all(stored);
  });
  return { seen };
}
