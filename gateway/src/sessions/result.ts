/** The verdict of a session, for its driver. */
import { exponentialBackoff, type Farm, isArtifactGone, poll, Report, Result } from '@swefarm/shared';
import { z } from 'zod';

export const SessionVerdict = Result.pick({
  outcome: true,
  resolved: true,
  reward: true,
  reward_components: true,
  reward_parts: true,
  reward_row: true,
  exit_status: true,
  turns: true,
  failure: true,
  seconds: true,
  dry_run: true,
}).extend({
  judged: z
    .boolean()
    .meta({ description: 'false: no reward, and no fault of the policy; leave the sample out' }),
  report: Report.nullable(),
});
export type SessionVerdict = z.infer<typeof SessionVerdict>;

/** Waits up to `blockMs` milliseconds for the verdict. Returns null if there is no verdict yet. */
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
  return SessionVerdict.parse({
    ...result,
    judged: result.outcome === 'judged' && result.reward !== null,
    report: await reportOf(farm, result),
  });
}

async function reportOf(farm: Farm, { artifact }: Result): Promise<Report | null> {
  try {
    return (await farm.artifacts.read(artifact))?.report ?? null;
  } catch (error) {
    // The artifact may expire before the result. The verdict is valid without the report.
    if (isArtifactGone(error)) return null;
    throw error;
  }
}
