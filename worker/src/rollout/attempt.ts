/**
 * What becomes of one claimed job: claim in the journal, run, and then exactly one of: committed, tried again later,
 * handed back, or left to the worker that has it now. BullMQ decides nothing of this.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  asksPolicy,
  type CancelReason,
  type Claim,
  decide,
  errorMessage,
  type Failure,
  type FailureStage,
  type JournalEntry,
  type Log,
  type Outcome,
  onAbort,
  originsOf,
  RolloutFailure,
  type RolloutJob,
  type RunRecord,
  refusedByRedis,
  SwefarmError,
  UnusableError,
} from '@swefarm/shared';
import { isPausedTooLong } from '../agent/policy/pauselimit.ts';
import type { Node } from '../node/node.ts';
import { recordsOf } from '../node/ours.ts';
import { diskIsFull } from '../sandbox/free.ts';
import { abortKind, abortOf } from './abort.ts';
import { summaryOf } from './attemptlog.ts';
import { commitResult } from './commitresult.ts';
import type { Judged } from './facts.ts';
import {
  type AfterAttempt,
  type AttemptContext,
  type ClaimedRollout,
  endAttempt,
  handBack,
  patiently,
  putOff,
  storeWorkOfAttempt,
  unlessOver,
} from './handback.ts';
import { startLive } from './live.ts';
import { dropResumableWork, resumeWork } from './resume.ts';
import { startStageClock } from './stages.ts';
import { isStale } from './staleness.ts';
import { emptyTrace, type Task } from './task.ts';
import { retryUntilAnswered } from './untilanswered.ts';

/** Stages whose failures, once the agent is done, say nothing against its work. A slow policy's would be judged the same. */
const WORK_STANDS: ReadonlySet<FailureStage> = new Set(['evaluation', 'sandbox', 'worker']);

const DISK_BREAKS: ReadonlySet<FailureStage> = new Set(['image', 'sandbox', 'evaluation']);

const DONE: AfterAttempt = { next: 'done' };
/** How long a job waits for another node when the one that failed it claims it again. */
const ELSEWHERE_MS = 2_000;
const ELSEWHERE_PATIENCE_MS = 10_000;
/** How soon a rollout whose run, or whose policy, stands still is looked at again. */
const RUN_PAUSED_MS = 10_000;
/** How long the worker of an attempt that seems to go on has to come back for the job: it looks each three seconds. */
const HELD_MS = 7_000;
const LAST_TO_HEAR_MS = 300;

export async function attemptRollout(
  job: RolloutJob,
  node: Node,
  signal: AbortSignal,
): Promise<AfterAttempt> {
  const records = await recordsOf(job, node, signal);
  if ('next' in records) return records;
  const { run } = records;
  const claim = await claimOf(job, run, node, signal);
  if (claim === null) return { next: 'hand_back', gone: Promise.resolve() };
  if (claim.status === 'paused') return { next: 'later', delayMs: RUN_PAUSED_MS };
  if (claim.status === 'held') return { next: 'later', delayMs: HELD_MS, passed: claim.claim };
  if (claim.status !== 'claimed') return DONE;
  node.active.claimed(job.rollout_id, { attempt: claim.attempt, claim: claim.claim });
  const { attempt, claim: nonce, previous } = claim;
  const claimed: ClaimedRollout = { job, attempt, claim: nonce, previous, ...records };

  const { identity, liveTurns } = node;
  const { run_id, instance_id, rollout_id } = job;
  const log = node.log.child({ run_id, instance_id, rollout_id, attempt: claim.attempt });
  const live = startLive(
    { live: node.farm.live, clock: node.farm.clock, ...identity, keep: liveTurns, log },
    job.rollout_id,
    claim.attempt,
  );
  const clock = startStageClock((node.farm.clock.now() - job.submitted_at) / 1000, {
    onEnter: (stage) => live.stage(stage),
    onStage: (stage, seconds) => {
      node.metrics.stageSeconds.observe({ stage }, seconds);
      log.debug({ stage, seconds }, 'stage over');
    },
  });
  const context = { claimed, node, clock, live, log, trace: emptyTrace(), signal };
  try {
    return await attemptClaimed(context, claim.cancelled);
  } catch (error) {
    // It was to be settled, and Redis did not let it until the attempt was over.
    if (error !== abortOf(signal)) throw error;
    return abortKind(signal) === 'drain' ? await handBack(context, Promise.resolve()) : DONE;
  } finally {
    void live.end();
  }
}

/** Null: Redis refused until the worker was to go. */
async function claimOf(
  job: RolloutJob,
  run: RunRecord,
  node: Node,
  signal: AbortSignal,
): Promise<Claim | null> {
  const { log, farm, identity } = node;
  try {
    let over = job.passed ?? null;
    // Whoever was killed is not waited for; of those who live, and after an outage of those who may, nothing is taken at once.
    const claim = async (): Promise<Claim> => {
      const onlyKept = await awaitsPolicy(run, node);
      const claimed = await farm.journal.claim(job.rollout_id, identity, { over, onlyKept });
      const { registry } = farm;
      if (claimed.status !== 'held' || !registry.sure() || (await registry.lives(claimed.worker)))
        return claimed;
      over = claimed.claim;
      return await claim();
    };
    return await retryUntilAnswered('claim', claim, { log, signal, endedBy: ['drain'] });
  } catch (error) {
    if (error !== abortOf(signal)) throw error;
    return null;
  }
}

/** Whether all that the rollout could do here is wait for its policy. */
const awaitsPolicy = async ({ agent, policy }: RunRecord, { farm, policyPauseLimitMs }: Node) =>
  asksPolicy(agent.type) && policy !== null && (await isPausedTooLong(policy, farm, policyPauseLimitMs));

async function attemptClaimed(
  context: AttemptContext,
  cancelled: CancelReason | null,
): Promise<AfterAttempt> {
  const { claimed, node } = context;
  const { previous } = claimed;
  if (cancelled) return commit(context, cancelled, null, null);

  const decision = decide(previous);
  if (decision.action === 'give_up') return commit(context, 'failed', null, decision.failure);
  if (await betterElsewhere(decision.avoidNodes, previous, node)) {
    await endAttempt(context, { stage: null, class: 'drained', cause: 'left to another node' });
    return { next: 'later', delayMs: ELSEWHERE_MS, anywhere: true };
  }
  const running = taskOf(context).then((task) => node.rollout(task, node));
  try {
    const judged = await unlessDrained(running, context.signal);
    node.breaker.succeeded();
    // Between the last look and the commit the policy may have gone on.
    const look = () => isStale(context.claimed.run, context.trace.trajectory, node.farm.policies);
    const stale = await retryUntilAnswered('policy', look, patiently(context));
    return stale ? await commit(context, 'stale', null, null) : await commit(context, 'judged', judged, null);
  } catch (error) {
    return await afterError(context, error, running);
  }
}

/** Rejects at the moment of a drain: the job need not wait for its containers to be removed. */
async function unlessDrained<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
  const drained = Promise.withResolvers<never>();
  using _listener = onAbort(signal, () => {
    if (abortKind(signal) === 'drain') drained.reject(signal.reason);
  });
  return await Promise.race([drained.promise, running]);
}

async function taskOf(context: AttemptContext): Promise<Task> {
  const { claimed, node, clock, live, log, trace, signal } = context;
  const { job, attempt, claim, run } = claimed;
  if ('problem' in claimed.instance) throw new RolloutFailure('instance_invalid', claimed.instance.problem);
  const { value: instance } = claimed.instance;
  const { farm } = node;
  const how = patiently(context);
  const { patch_ref } = job;
  const patch = patch_ref
    ? await retryUntilAnswered('patch', () => farm.runs.getPatch(run.run_id, patch_ref), how)
    : null;
  const keyRef = run.policy?.api_key_ref;
  const stored = keyRef ? await retryUntilAnswered('policy key', () => farm.secrets.get(keyRef), how) : null;
  // A key of a version that kept no origins is for the endpoints of its run, and for none that a policy entry brings.
  const apiKey = stored && { ...stored, origins: stored.origins ?? originsOf(run.policy?.urls) };
  const kept = await resumeWork(farm, claimed.previous, how);
  return { job, attempt, claim, run, instance, patch, apiKey, kept, clock, live, log, signal, trace };
}

/** True for a short while after a failure that another node should try, when there is another node. */
async function betterElsewhere(
  avoidNodes: readonly string[],
  previous: JournalEntry[],
  node: Node,
): Promise<boolean> {
  if (!avoidNodes.includes(node.identity.node)) return false;
  const failedAt = Math.max(
    ...previous.filter((e) => e.end?.class !== 'drained').map((e) => e.ended_at ?? 0),
  );
  if (node.farm.clock.now() - failedAt > ELSEWHERE_PATIENCE_MS) return false;
  const workers = await node.farm.registry.list();
  return workers.some((other) => !avoidNodes.includes(other.node) && other.paused === null);
}

async function commit(
  context: AttemptContext,
  end: 'judged' | 'failed' | CancelReason,
  judged: Judged | null,
  failure: Failure | null,
): Promise<AfterAttempt> {
  const { claimed, node, clock, trace } = context;
  const { job, attempt, claim, run } = claimed;
  const cancelReason = end === 'judged' || end === 'failed' ? null : end;
  const outcome = end === 'judged' || end === 'failed' ? end : 'cancelled';
  const won = await commitResult(
    { job, attempt, claim, run, outcome, cancelReason, judged, failure, trace, clock },
    node,
    patiently(context),
  );
  // The result stands, also when the attempt is over before Redis takes this.
  await endAttempt(context, {
    stage: failure?.stage ?? null,
    class: failure?.class ?? 'done',
    cause: failure?.message.slice(0, 200) ?? (won ? null : 'late: another attempt was first'),
  }).catch(unlessOver(context));
  await dropResumableWork(node.farm, claimed.previous, node.log);
  summarise(context, outcome, judged, failure, won);
  return DONE;
}

async function afterError(
  context: AttemptContext,
  error: unknown,
  running: Promise<unknown>,
): Promise<AfterAttempt> {
  const { claimed, node, log, signal } = context;
  const { attempt, claim, previous } = claimed;
  const aborted = abortOf(signal);
  const kind = aborted?.kind;
  if (aborted && kind === 'cancelled') return commit(context, aborted.cancelReason, null, null);
  if (kind === 'superseded') {
    // A word of its own, so that nobody takes it for a crash.
    const said = endAttempt(context, { stage: null, class: 'drained', cause: 'another attempt has it' });
    await said.catch(unlessOver(context));
    node.metrics.attempts.inc({ class: 'drained' });
    return DONE;
  }
  if (kind === 'drain') return handBack(context, running);
  if (error instanceof UnusableError && refusedByRedis(error)) return putOff(context, error);
  const failed = await asFailure(error, node, log);
  // A batch scheduler tells every process of a job, sandboxes too: what they lose by it is no failure of theirs.
  if (failed.stage !== 'instance' && (await toldToStop(node.stop))) return handBack(context, running);
  if ('value' in claimed.instance) {
    const { run_id: run, instance_id: instance } = claimed.job;
    const sample = { run, instance, image: claimed.instance.value.image };
    node.breaker.failed(failed.failureClass, errorMessage(failed).slice(0, 200), sample);
  }
  const end = { stage: failed.stage, class: failed.failureClass, cause: errorMessage(failed).slice(0, 200) };
  const entry: JournalEntry = {
    attempt,
    claim,
    worker: node.identity.worker,
    node: node.identity.node,
    claimed_at: node.farm.clock.now(),
    ended_at: node.farm.clock.now(),
    end,
  };
  const decision = decide([...previous, entry]);
  if (decision.action === 'run') {
    const kept = WORK_STANDS.has(end.stage) ? await storeWorkOfAttempt(context) : {};
    await endAttempt(context, { ...end, ...kept });
    node.metrics.attempts.inc({ class: failed.failureClass });
    log.warn(
      { stage: end.stage, failure: `${end.stage}/${end.class}`, again_in_ms: decision.delayMs },
      end.cause,
    );
    return { next: 'later', delayMs: decision.delayMs, anywhere: true };
  }
  try {
    return await commit(context, 'failed', null, {
      ...decision.failure,
      message: errorMessage(failed).slice(0, 400),
    });
  } catch (storeError) {
    if (storeError === abortOf(signal)) throw storeError;
    // The artifact store itself is what fails: the result without its artifact is worth more than none.
    log.warn({ err: errorMessage(storeError) }, 'failed without an artifact');
    Object.assign(context.trace, emptyTrace());
    return commit(context, 'failed', null, decision.failure);
  }
}

/** Whether this worker was told to end, or is now: it may be the last of the job's processes to hear of it. */
async function toldToStop(stop: AbortSignal): Promise<boolean> {
  await sleep(LAST_TO_HEAR_MS, null, { signal: stop }).catch(nothing);
  return stop.aborted;
}

const nothing = (): void => undefined;

async function asFailure(error: unknown, { runtime }: Node, log: Log): Promise<RolloutFailure> {
  if (error instanceof RolloutFailure) {
    // A full disk shows in many ways, and each asks for another node.
    const byDisk = DISK_BREAKS.has(error.stage) && (await diskIsFull(runtime));
    return byDisk ? new RolloutFailure('node_disk', error.message, { cause: error }) : error;
  }
  if (error instanceof SwefarmError && error.code === 'instance_invalid')
    return new RolloutFailure('instance_invalid', error.message, { cause: error });
  log.error({ err: error }, 'an error nobody foresaw');
  return new RolloutFailure('bug', errorMessage(error), { cause: error });
}

function summarise(
  { claimed, node, clock, log, trace }: AttemptContext,
  outcome: Outcome,
  judged: Judged | null,
  failure: Failure | null,
  won: boolean,
): void {
  node.metrics.attempts.inc({ class: failure?.class ?? (won ? 'done' : 'late') });
  const ended = {
    outcome,
    judged,
    failure,
    won,
    trace,
    previous: claimed.previous,
    seconds: clock.seconds(),
  };
  const { fields, sentence } = summaryOf(ended);
  log.info(fields, sentence);
}
