/** The result of a session, as its driver gets it. */
import {
  exponentialBackoff,
  type Farm,
  isArtifactGone,
  poll,
  type Report,
  type Result,
} from '@swefarm/shared';

export type SessionVerdict = Pick<
  Result,
  | 'outcome'
  | 'resolved'
  | 'reward'
  | 'reward_components'
  | 'reward_row'
  | 'exit_status'
  | 'turns'
  | 'failure'
  | 'seconds'
> & {
  /** False: no reward, and no fault of the policy's; leave the sample out. */
  judged: boolean;
  /** Test by test; null when nothing was evaluated or its artifact is gone. */
  report: Report | null;
};

/** Waits up to `blockMs` for the result of a rollout; null when there is none yet. */
export async function awaitVerdict(
  farm: Farm,
  rolloutId: string,
  blockMs: number,
  signal: AbortSignal,
): Promise<SessionVerdict | null> {
  const look = (): Promise<Result | null> => farm.results.get(rolloutId);
  const result = await poll(look, { pauseMs: exponentialBackoff(10, 250, 1.5), withinMs: blockMs, signal });
  return result && (await verdictOf(farm, result));
}

async function verdictOf(farm: Farm, result: Result): Promise<SessionVerdict> {
  const { outcome, resolved, reward, reward_row, exit_status, turns, failure, seconds } = result;
  const { reward_components: parts } = result;
  return {
    judged: outcome === 'judged' && reward !== null,
    outcome,
    resolved,
    reward,
    ...(parts ? { reward_components: parts } : {}),
    reward_row,
    exit_status,
    turns,
    failure,
    seconds,
    report: await reportOf(farm, result),
  };
}

async function reportOf(farm: Farm, { artifact }: Result): Promise<Report | null> {
  try {
    return (await farm.artifacts.read(artifact))?.report ?? null;
  } catch (error) {
    // Artifacts have a shorter life than results; the verdict stands without its details.
    if (isArtifactGone(error)) return null;
    throw error;
  }
}
