/** Waits until the policy of a rollout may take it, before any sandbox of the rollout starts. */
import { onAbort, rankOf } from '@swefarm/shared';
import type { Permit } from '../admission/admission.ts';
import { poolOf } from '../admission/pool.ts';
import type { Task } from './context.ts';
import { retryUntilAnswered, untilAborted } from './untilanswered.ts';

/** Returns null for a run without policy or admission. The wait counts as time in the queue. A worker that stops hands the rollout back. */
export async function admit(task: Task): Promise<Permit | null> {
  const { run, job, apiKey, signal, clock, live, log, services } = task;
  const { policy, kind } = run;
  if (policy === null) return null;
  const read = () => poolOf(policy, services.farm.policies);
  const pool = await retryUntilAnswered('policy', read, untilAborted(task));
  if (pool === null) return null;
  const rollout = job.rollout_id;
  using _stopped = onAbort(services.stop, () =>
    services.active.abort(rollout, 'drain', undefined, 'the rollout waited for its policy'),
  );
  const from = performance.now();
  const permit = await services.admission.enter(pool, { rollout, rank: rankOf(kind), apiKey }, signal, () => {
    live.stage('admission');
    log.info({ policy: pool.id }, 'waiting until the policy may take the rollout');
  });
  clock.addQueued((performance.now() - from) / 1000);
  return permit;
}
