/** What the driver of a session is told of its end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeArtifact, type Farm, type Report, type Result, SwefarmError } from '@swefarm/shared';

export type SessionVerdict = Pick<
  Result,
  'outcome' | 'resolved' | 'reward' | 'reward_row' | 'exit_status' | 'turns' | 'failure' | 'seconds'
> & {
  /** False: no reward, and no fault of the model's; leave the sample out. */
  judged: boolean;
  /** Test by test; null when nothing was evaluated or its artifact is gone. */
  report: Report | null;
};

const PAUSES_MS = { first: 10, longest: 250 };

/** Waits up to `blockMs` for the result of a rollout; null when there is none yet. */
export async function awaitVerdict(
  farm: Farm,
  rolloutId: string,
  blockMs: number,
  signal: AbortSignal,
): Promise<SessionVerdict | null> {
  const until = Date.now() + blockMs;
  for (let pause = PAUSES_MS.first; ; pause = Math.min(pause * 1.5, PAUSES_MS.longest)) {
    signal.throwIfAborted();
    const result = await farm.results.get(rolloutId);
    if (result) return await verdictOf(farm, result);
    if (Date.now() >= until) return null;
    await sleep(pause, undefined, { signal });
  }
}

async function verdictOf(farm: Farm, result: Result): Promise<SessionVerdict> {
  const { outcome, resolved, reward, reward_row, exit_status, turns, failure, seconds } = result;
  return {
    judged: outcome === 'judged' && reward !== null,
    ...{ outcome, resolved, reward, reward_row, exit_status, turns, failure, seconds },
    report: await reportOf(farm, result),
  };
}

/** Nothing is where the artifact lay, or what is there cannot be read. */
const GONE = new Set(['artifact_missing', 'bad_artifact_locator', 'bad_artifact']);

async function reportOf(farm: Farm, { artifact }: Result): Promise<Report | null> {
  if (artifact === null) return null;
  try {
    return (await decodeArtifact(await farm.artifacts.get(artifact))).report ?? null;
  } catch (error) {
    // Artifacts have a shorter life than results; the verdict stands without its details.
    if (error instanceof SwefarmError && GONE.has(error.code)) return null;
    throw error;
  }
}
