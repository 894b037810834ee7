/** Reads the chosen rollouts in stored order with their artifacts, one ahead of the writer. */
import { type ArtifactContent, errorMessage, SwefarmError } from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';
import type { ResultSource } from './source.ts';

export type Fetched = { line: OutputLine; sample: number; model: string | null } & (
  | { content: ArtifactContent | null }
  /** Why its artifact cannot be read; a retry would not help. */
  | { lost: string }
);

/** Artifacts in memory at once. */
const AHEAD = 2;

/**
 * `done`: rollouts that need not be read.
 *
 * @throws SwefarmError of an artifact store that is out of reach
 */
export async function* fetchChosen(
  sources: readonly ResultSource[],
  chosen: ReadonlyMap<string, number>,
  done: ReadonlySet<string>,
  read: (line: OutputLine) => Promise<ArtifactContent | null>,
): AsyncGenerator<Fetched> {
  const waiting: Promise<Fetched>[] = [];
  const fetchedIds = new Set(done);
  for (const source of sources) {
    const model = source.record?.policy?.model ?? null;
    for await (const line of source.lines()) {
      const sample = chosen.get(line.rollout_id);
      if (sample === undefined || fetchedIds.has(line.rollout_id)) continue;
      fetchedIds.add(line.rollout_id);
      const fetched = fetchOne(line, read).then((found) => ({ line, sample, model, ...found }));
      // Awaited below; an error must not count as unhandled until then.
      fetched.catch(() => undefined);
      waiting.push(fetched);
      if (waiting.length < AHEAD) continue;
      for (const one of waiting.splice(0, 1)) yield await one;
    }
  }
  for (const one of waiting) yield await one;
}

async function fetchOne(
  line: OutputLine,
  read: (line: OutputLine) => Promise<ArtifactContent | null>,
): Promise<{ content: ArtifactContent | null } | { lost: string }> {
  try {
    return { content: await read(line) };
  } catch (error) {
    if (!(error instanceof SwefarmError) || error.retryable) throw error;
    return { lost: LOST[error.code] ?? errorMessage(error) };
  }
}

/** Rollouts are counted by these reasons. */
const LOST: Readonly<Record<string, string>> = {
  artifact_missing: 'whose artifact is gone',
  bad_artifact: 'whose artifact is damaged',
  artifact_version: 'whose artifact is of another version of swefarm',
  bad_artifact_locator: 'whose artifact cannot be found',
};
