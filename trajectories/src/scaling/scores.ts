/** Reads and appends the file of a verifier's scores: one line for each rollout, so that a killed command can continue. */
import { createReadStream } from 'node:fs';
import { parseJsonLines } from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { openAppending } from '../output/appendfile.ts';

const ScoreLine = z.object({
  rollout_id: z.string(),
  instance_id: z.string(),
  /** Score of the rollout; higher is better. The score of a yes/no verifier is the probability of yes (0 to 1). */
  score: z.number(),
  /** Name of the verifier; scores of different verifiers are not comparable. */
  verifier: z.string(),
});
export type ScoreLine = z.infer<typeof ScoreLine>;

/** Returns the default path of the scores of an output: `out.scores.jsonl` for `out.jsonl`. */
export const scoresPath = (output: string): string => output.replace(/(?:\.jsonl?)?$/, '.scores.jsonl');

/** Returns the scores by rollout id. Throws UsageError for an unreadable file, a damaged line, and several verifiers. */
export async function readScores(path: string): Promise<Map<string, ScoreLine>> {
  const found = new Map<string, ScoreLine>();
  try {
    for await (const read of parseJsonLines(createReadStream(path))) {
      const line = ScoreLine.safeParse('value' in read ? read.value : null);
      if (!line.success)
        throw new UsageError(`${path}: ${read.where} is no line of swefarm score; correct or remove it`);
      found.set(line.data.rollout_id, line.data);
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `${path}: cannot be read: ${(error as Error).message}; write it with swefarm score`,
      { cause: error },
    );
  }
  const verifiers = [...new Set([...found.values()].map(({ verifier }) => verifier))];
  if (verifiers.length < 2) return found;
  throw new UsageError(
    `${path}: has scores of several verifiers (${verifiers.join(', ')}), which cannot be compared; write one file for each`,
  );
}

export type ScoreFile = Awaited<ReturnType<typeof openScores>>;

/** Opens a file of scores to continue it. Throws UsageError when the file is no file of scores or has scores of another verifier. */
export async function openScores(path: string, verifier: string) {
  const file = await openAppending(path, '{"rollout_id":"');
  try {
    const known: ReadonlyMap<string, ScoreLine> = await readScores(path);
    const other = [...known.values()].find((line) => line.verifier !== verifier);
    if (other)
      throw new UsageError(
        `${path}: has scores of ${other.verifier}, not of ${verifier}; choose another --output`,
      );
    return {
      known,
      append: async (line: ScoreLine): Promise<void> => await file.appendFile(`${JSON.stringify(line)}\n`),
      [Symbol.asyncDispose]: async (): Promise<void> => await file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}
