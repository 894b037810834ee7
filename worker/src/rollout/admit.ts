/** Asks for admission of a rollout to its policy before any attempt, so that a waiting rollout uses no slot and no sandbox. */
import type { RolloutJob, RunRecord } from '@swefarm/shared';
import type { Permit, Waiting } from '../admission/admission.ts';
import { poolOf } from '../admission/pool.ts';
import type { AttemptServices } from './context.ts';
import { type AnswerWait, retryUntilAnswered } from './untilanswered.ts';

/**
 * Returns the permit or the wait of a rollout; null: the run has no policy or no admission. Throws the signal's reason when it aborts.
 * @param order priority of the job
 */
export async function admit(
  { policy }: RunRecord,
  { rollout_id: rollout }: RolloutJob,
  order: number,
  { farm, admission }: AttemptServices,
  how: AnswerWait & { signal: AbortSignal },
): Promise<Permit | Waiting | null> {
  if (policy === null) return null;
  const pool = await retryUntilAnswered('policy', () => poolOf(policy, farm.policies), how);
  if (pool === null) return null;
  const { api_key_ref: keyRef } = policy;
  const apiKey = async () => (keyRef ? await farm.secrets.get(keyRef) : null);
  return await admission.enter(pool, { rollout, order, apiKey }, how.signal);
}

/** Removes a rollout of a paused run from its pool, so that it takes no slot from other runs. Returns null: the rollout has no permit. */
export async function leavePool(
  { policy }: RunRecord,
  { rollout_id: rollout }: RolloutJob,
  { farm }: AttemptServices,
  how: AnswerWait,
): Promise<null> {
  const leave = async () => {
    const pool = policy && (await poolOf(policy, farm.policies));
    if (pool) await farm.admissions.leave(pool.id, [rollout]);
  };
  await retryUntilAnswered('policy', leave, how);
  return null;
}
