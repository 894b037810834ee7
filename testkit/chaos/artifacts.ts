/** Checks that a result and its artifact are of the same attempt: a trainer trains on the artifact with the reward of the result. */
import { type ArtifactContent, errorMessage } from '@swefarm/shared';
import type { ChaosFarm } from './farm.ts';
import type { Seen } from './verdict.ts';

const AT_ONCE = 8;

/** Returns a line for each problem. */
export async function artifactsApart(farm: ChaosFarm, results: readonly Seen[]): Promise<string[]> {
  const problems: string[] = [];
  const left = [...results];
  const look = async (): Promise<void> => {
    for (let seen = left.pop(); seen; seen = left.pop()) problems.push(...(await apart(farm, seen)));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, look));
  return problems;
}

async function apart(farm: ChaosFarm, seen: Seen): Promise<string[]> {
  if (seen.artifact === null)
    return seen.outcome === 'judged' ? [`${seen.rollout_id}: judged, and without an artifact`] : [];
  try {
    const content = await farm.view.artifacts.read(seen.artifact);
    return content ? differences(seen, content) : [];
  } catch (error) {
    return [`${seen.rollout_id}: its artifact cannot be read: ${errorMessage(error)}`];
  }
}

/** Returns a line for each difference between an artifact and its result. */
export function differences(seen: Seen, content: ArtifactContent): string[] {
  const { report, trajectory } = content;
  const pairs: [what: string, of: unknown, inArtifact: unknown][] = [
    ['rollout', seen.rollout_id, content.rollout_id],
    ['attempt', seen.attempt, content.attempt],
    ['claim', seen.claim, content.claim],
    ...(seen.outcome === 'judged'
      ? ([
          ['turns', seen.turns, trajectory?.turns.length ?? 0],
          ['contiguous ids', true, trajectory?.contiguous ?? seen.turns === 0],
          ['verdict', seen.resolved, report?.resolved ?? false],
        ] as [string, unknown, unknown][])
      : []),
  ];
  return pairs
    .filter(([, one, other]) => one !== other)
    .map(([what, one, other]) => `${seen.rollout_id}: ${what} ${one}, its artifact has ${other}`);
}
