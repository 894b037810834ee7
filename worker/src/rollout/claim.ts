/**
 * Claims the rollout of a job in the journal. The claim opens an attempt with a nonce, which every later write of the attempt needs. The
 * records of the job are read first, so that a job for another software version costs no attempt.
 */
import {
  asksPolicy,
  type Claim,
  isDamagedInstance,
  isNotOurs,
  policyOfRollout,
  type RolloutJob,
  type RunRecord,
} from '@swefarm/shared';
import { isPausedTooLong } from '../agent/policy/pauselimit.ts';
import { abortOf } from './active.ts';
import { admit, leavePool } from './admit.ts';
import { type AfterAttempt, type AttemptServices, type ClaimedRollout, DONE, HAND_BACK } from './context.ts';
import { type AnswerWait, retryUntilAnswered } from './untilanswered.ts';

const NOT_OURS_MS = 5_000;
/** Delay of a job whose run or policy is paused. */
const RUN_PAUSED_MS = 10_000;
/** Delay while the worker of another attempt seems to be alive: two renewals by that worker (RENEW_MS of joblocks.ts) and a second. */
const OTHER_ATTEMPT_MS = 7_000;

/**
 * Returns the claimed rollout, or what to do with the job if this worker does not run it now. If the policy does not admit the rollout, it is
 * claimed only to evaluate finished work or to commit a cancel. The caller must dispose the permit.
 * @param order priority of the job
 */
export async function claimRollout(
  job: RolloutJob,
  services: AttemptServices,
  signal: AbortSignal,
  order: number,
): Promise<ClaimedRollout | AfterAttempt> {
  const { farm, log } = services;
  const how = { log, signal, endedBy: ['drain'] } satisfies AnswerWait;
  using stack = new DisposableStack();
  try {
    const { run_id } = job;
    const read = () =>
      Promise.all([farm.runs.get(run_id), instanceOf(job, farm), farm.groups.paused(run_id)]);
    const [record, instance, pause] = await retryUntilAnswered('run record and instance', read, how);
    if (!record || !instance) {
      log.warn({ rollout_id: job.rollout_id }, 'job dropped: the records of its run are gone');
      return DONE;
    }
    const run = withOwnPolicy(record, job);
    if ((run.dry_run === true) !== services.dryRun) {
      const notOurs = services.dryRun ? 'it belongs to no dry run' : 'it belongs to a dry run';
      return { next: 'later', delayMs: NOT_OURS_MS, notOurs };
    }
    const isPaused = typeof pause?.reason === 'string';
    const admitted = stack.use(
      isPaused ? await leavePool(run, job, services, how) : await admit(run, job, order, services, how),
    );
    const waits = admitted !== null && 'delayed' in admitted;
    const claimed = await retryUntilAnswered('claim', claimer(job, run, services, isPaused || waits), how);
    if (claimed.status === 'paused' && waits) {
      stack.move();
      return { next: 'later', delayMs: admitted.delayMs, delayed: admitted.delayed };
    }
    if (claimed.status === 'paused') return { next: 'later', delayMs: RUN_PAUSED_MS };
    if (claimed.status === 'in_work') {
      admitted?.leaveToOther();
      return { next: 'later', delayMs: OTHER_ATTEMPT_MS, passed: claimed.claim };
    }
    if (claimed.status !== 'claimed') return DONE;
    const { attempt, claim, previous, cancelled } = claimed;
    if (!waits) stack.move();
    const permit = waits ? null : admitted;
    return { job, attempt, claim, previous, cancelled, run, instance, permit };
  } catch (error) {
    // The worker had to exit before Redis accepted the claim.
    if (error === abortOf(signal)) return HAND_BACK;
    if (!isNotOurs(error)) throw error;
    return { next: 'later', delayMs: NOT_OURS_MS, notOurs: error.message };
  }
}

/** Returns the run with the rollout's own policy. */
const withOwnPolicy = (run: RunRecord, { policy: own }: RolloutJob): RunRecord =>
  run.policy && own ? { ...run, policy: policyOfRollout(run.policy, own) } : run;

/** A damaged record is damaged for every worker, so its rollouts are claimed and committed as failed. */
async function instanceOf(job: RolloutJob, { runs }: AttemptServices['farm']) {
  try {
    const value = await runs.getInstance(job.run_id, job.instance_id);
    return value && { value };
  } catch (error) {
    if (isDamagedInstance(error)) return { problem: error.message };
    throw error;
  }
}

/** Returns a function that claims. Only the claim of a worker that is known to be dead is taken over at once. */
function claimer(
  job: RolloutJob,
  run: RunRecord,
  services: AttemptServices,
  isNotAdmitted: boolean,
): () => Promise<Claim> {
  const { journal, registry } = services.farm;
  let over = job.passed ?? null;
  return async () => {
    for (;;) {
      const onlyResumable = isNotAdmitted || (await waitsForPolicy(run, services));
      const claimed = await journal.claim(job.rollout_id, services.identity, { over, onlyResumable });
      if (claimed.status !== 'in_work' || !registry.canJudgeDead()) return claimed;
      if (await registry.lives(claimed.worker)) return claimed;
      over = claimed.claim;
    }
  };
}

const waitsForPolicy = async ({ agent, policy }: RunRecord, services: AttemptServices): Promise<boolean> =>
  asksPolicy(agent.type) && policy !== null && (await isPausedTooLong(policy, services));
