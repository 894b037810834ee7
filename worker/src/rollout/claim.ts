/** Claims a rollout in the journal. The claim opens an attempt with a nonce, which every later write of the attempt needs. */
import { asksPolicy, type Claim, type RolloutJob, type RunRecord } from '@swefarm/shared';
import { isPausedTooLong } from '../agent/policy/pauselimit.ts';
import { abortOf } from './abort.ts';
import type { AttemptServices } from './services.ts';
import { retryUntilAnswered } from './untilanswered.ts';

type Services = Pick<AttemptServices, 'farm' | 'identity' | 'log' | 'policyPauseLimitMs'>;

/** Returns null when the worker had to exit before Redis accepted the claim. */
export async function claimRollout(
  job: RolloutJob,
  run: RunRecord,
  services: Services,
  signal: AbortSignal,
): Promise<Claim | null> {
  const { log, farm, identity } = services;
  let over = job.passed ?? null;
  // Only the claim of a worker that is known to be dead is taken over at once.
  const claim = async (): Promise<Claim> => {
    const onlyResumable = await waitsForPolicy(run, services);
    const claimed = await farm.journal.claim(job.rollout_id, identity, { over, onlyResumable });
    const { registry } = farm;
    if (claimed.status !== 'in_work' || !registry.canJudgeDead() || (await registry.lives(claimed.worker)))
      return claimed;
    over = claimed.claim;
    return await claim();
  };
  try {
    return await retryUntilAnswered('claim', claim, { log, signal, endedBy: ['drain'] });
  } catch (error) {
    if (error !== abortOf(signal)) throw error;
    return null;
  }
}

const waitsForPolicy = async ({ agent, policy }: RunRecord, { farm, policyPauseLimitMs }: Services) =>
  asksPolicy(agent.type) && policy !== null && (await isPausedTooLong(policy, farm, policyPauseLimitMs));
