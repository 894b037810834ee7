/**
 * Stores the artifacts of an attempt. If an attempt ends without a result after its agent has ended, the agent's work is stored as its
 * artifact and named in the journal (resumable work), and the next attempt evaluates that work without running the agent again.
 */
import {
  type ArtifactContent,
  type CollectedArtifact,
  createSemaphore,
  encodeArtifact,
  errorMessage,
  type Failure,
  type RewardFacts,
  RolloutFailure,
  SwefarmError,
  softwareVersion,
} from '@swefarm/shared';
import { abortOf } from './active.ts';
import { type AttemptContext, isEmpty, type ResumableWork } from './context.ts';
import { type AnswerWait, retryUntilAnswered, untilTakenOver } from './untilanswered.ts';

/** Maximum number of parallel encoders, so that many rollouts that end at once do not block the event loop. */
const encoders = createSemaphore(2);

/**
 * Returns the locator of the artifact; null if the attempt has nothing to store. If the store has no room, omits the artifacts of a Harbor
 * task from a final result. Throws RolloutFailure `artifact_store` when the artifact cannot be written, and the errors of
 * retryUntilAnswered().
 */
export async function storeArtifact(
  context: AttemptContext,
  more: { failure?: Failure | null; kept?: ArtifactContent['kept'] },
  how: AnswerWait,
): Promise<string | null> {
  const { trace, log } = context;
  const { failure = null, kept } = more;
  if (isEmpty(trace)) return null;
  const store = (collected: readonly CollectedArtifact[] | null) =>
    storeWith(context, { failure, ...(kept ? { kept } : {}), ...(collected ? { collected } : {}) }, how);
  try {
    return await store(trace.collected).catch((error: unknown) => {
      const hasFiles = trace.collected?.some(({ files }) => files.length > 0);
      // The next attempt grades the artifacts of resumable work.
      if (kept || !hasFiles || !isShortOfRoom(error)) throw error;
      log.warn({ err: errorMessage(error) }, 'no room for the artifacts of the Harbor task');
      return store(withoutFiles(trace.collected ?? []));
    });
  } catch (cause) {
    if (cause instanceof SwefarmError) throw new RolloutFailure('artifact_store', cause.message, { cause });
    throw cause;
  }
}

const isShortOfRoom = (error: unknown): boolean =>
  error instanceof SwefarmError && ['artifact_budget', 'artifact_disk_full'].includes(error.code);

const withoutFiles = (collected: readonly CollectedArtifact[]): CollectedArtifact[] =>
  collected.map((one) =>
    one.status === 'ok'
      ? { ...one, status: 'failed', why: 'the store of artifacts has no room', files: [] }
      : one,
  );

/** Encodes and stores the artifact once. Throws SwefarmError, and the errors of retryUntilAnswered(). */
async function storeWith(
  { job, attempt, claim, trace, services }: AttemptContext,
  given: {
    failure: Failure | null;
    kept?: ArtifactContent['kept'];
    collected?: readonly CollectedArtifact[];
  },
  how: AnswerWait,
): Promise<string> {
  const { failure, kept, collected } = given;
  const blob = await encoders.run(() =>
    encodeArtifact({
      format: 'swefarm-artifact-1',
      rollout_id: job.rollout_id,
      attempt,
      claim,
      software_version: softwareVersion(),
      instance_id: job.instance_id,
      trajectory: trace.trajectory,
      patch: trace.patch,
      report: trace.report,
      test_log: trace.testLog,
      eval_script: trace.evalScript,
      failure_detail: failure && `${failure.stage}/${failure.class}: ${failure.message}`,
      ...(kept ? { kept } : {}),
      ...(trace.outputs ? { outputs: trace.outputs } : {}),
      ...(collected ? { collected: [...collected] } : {}),
    }),
  );
  const put = () => {
    // A drain does not stop this write; only the claim of another worker does.
    const signal = how.signal && abortOf(how.signal)?.kind === 'superseded' ? how.signal : undefined;
    return services.farm.artifacts.put(job.rollout_id, { attempt, claim }, blob, signal);
  };
  return await retryUntilAnswered('artifact', put, how);
}

/**
 * Stores the work that the next attempt only evaluates, and returns the field of the journal entry that names this work: none if the agent
 * has not ended or the work cannot be stored.
 */
export async function storeResumableWork(
  context: AttemptContext,
  how = untilTakenOver(context),
): Promise<{ kept?: string }> {
  const { trace, log } = context;
  if (trace.facts === null || trace.trajectory === null || trace.patch === null) return {};
  // An evaluation that failed has no verdict.
  const facts = { ...trace.facts, evaluation: 'not_run' as const, resolved: null };
  try {
    const locator = await storeArtifact(context, { kept: resumableOf(context, facts) }, how);
    return locator ? { kept: locator } : {};
  } catch (error) {
    log.warn({ err: errorMessage(error) }, 'resumable work not stored: the agent works again');
    return {};
  }
}

const resumableOf = (
  { clock, trace: { agent } }: AttemptContext,
  facts: RewardFacts,
): ArtifactContent['kept'] => ({
  facts,
  seconds: clock.seconds(),
  ...(agent ? { agent } : {}),
});

/** Reads the newest stored work; null when there is none or it is unreadable. The agent then works again. */
export async function resumeWork(context: AttemptContext): Promise<ResumableWork | null> {
  const { previous, services, signal, log } = context;
  const locator = previous.findLast((entry) => entry.end?.kept)?.end?.kept;
  if (!locator) return null;
  try {
    const read = () => services.farm.artifacts.read(locator);
    const content = await retryUntilAnswered('stored work', read, untilTakenOver(context));
    const { trajectory = null, patch = null, kept, outputs = null, collected = null } = content ?? {};
    return trajectory && patch !== null && kept ? { ...kept, trajectory, patch, outputs, collected } : null;
  } catch (error) {
    if (error === abortOf(signal)) throw error;
    log.warn({ kept: locator, err: errorMessage(error) }, 'resumable work unreadable: the agent works again');
    return null;
  }
}

/** Removes stored work when the rollout has its result. If the removal fails, maintenance removes the work. */
export async function dropResumableWork({ previous, services, log }: AttemptContext): Promise<void> {
  for (const { end } of previous) {
    if (!end?.kept) continue;
    await services.farm.artifacts.remove(end.kept).catch((error: unknown) => {
      log.debug({ kept: end.kept, err: errorMessage(error) }, 'resumable work not removed');
    });
  }
}
