/** Reads the chosen rollouts and their artifacts in stored order, and fetches an artifact while the caller writes. */
import { type ArtifactContent, errorMessage, SwefarmError } from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';
import type { ResultSource } from './source.ts';

export type Fetched = { line: OutputLine; sample: number; model: string | null } & (
  | { content: ArtifactContent | null }
  /** Why the artifact cannot be read; a retry would not help. */
  | { lost: string }
);

/** Maximum number of artifacts in memory. */
const AHEAD = 2;

/**
 * Yields the chosen rollouts except those in `done`.
 * @throws SwefarmError when the artifact store is unreachable
 */
export async function* fetchChosen(
  sources: readonly ResultSource[],
  chosen: ReadonlyMap<string, number>,
  done: ReadonlySet<string>,
): AsyncGenerator<Fetched> {
  const waiting: Promise<Fetched>[] = [];
  const fetchedIds = new Set(done);
  for (const source of sources) {
    const model = source.record?.policy?.model ?? null;
    for await (const line of source.lines()) {
      const sample = chosen.get(line.rollout_id);
      if (sample === undefined || fetchedIds.has(line.rollout_id)) continue;
      fetchedIds.add(line.rollout_id);
      const fetched = fetchOne(line, source).then((found) => ({ line, sample, model, ...found }));
      // The promise is awaited later; without this handler, an earlier error would be an unhandled rejection.
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
  source: ResultSource,
): Promise<{ content: ArtifactContent | null } | { lost: string }> {
  try {
    return { content: await source.artifact(line) };
  } catch (error) {
    if (!(error instanceof SwefarmError) || error.retryable) throw error;
    return { lost: LOST[error.code] ?? errorMessage(error) };
  }
}

/** Reasons by which unreadable rollouts are counted, by error code. */
const LOST: Readonly<Record<string, string>> = {
  artifact_missing: 'whose artifact is gone',
  bad_artifact: 'whose artifact is damaged',
  artifact_version: 'whose artifact is of another version of swefarm',
  bad_artifact_locator: 'whose artifact cannot be found',
};
