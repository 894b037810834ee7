/** `swefarm select`: writes the rollout with the highest score of each instance. */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { replaceFile } from '@swefarm/shared';
import {
  encodeLine,
  readLines,
  readScores,
  requireNewOutput,
  type ScoreLine,
  scoresPath,
} from '@swefarm/trajectories';
import { command, required, text, texts } from './declare.ts';
import { EXIT } from './exit.ts';
import { printStatus } from './terminal.ts';

export const select = command({
  arguments: { '<outputs...>': 'output files; several are shards' },
  options: {
    '--scores <file...>': texts('files of swefarm score (default: OUTPUT.scores.jsonl beside each output)'),
    '--output <file>': required(text('file for the chosen lines, each with its score')),
  },
  example: 'swefarm select results.jsonl --output best.jsonl',
  async run({ output: target, scores: files }, { outputs }) {
    await requireNewOutput(target);
    const scores = await scoresOf(files ?? outputs.map(scoresPath));
    const best = new Map<string, Best>();
    const instances = new Set<string>();
    let missing = 0;
    for (const path of outputs) {
      for await (const line of readLines(path)) {
        instances.add(line.instance_id);
        if (line.outcome !== 'judged') continue;
        const score = scores.get(line.rollout_id)?.score;
        const known = best.get(line.instance_id);
        if (score === undefined) missing += 1;
        else if (!known || isBefore({ rollout: line.rollout_id, score }, known))
          best.set(line.instance_id, { rollout: line.rollout_id, score });
      }
    }
    const chosen = new Map([...best.values()].map(({ rollout, score }) => [rollout, score]));
    const lines: string[] = [];
    for (const path of outputs) {
      for await (const line of readLines(path)) {
        const score = chosen.get(line.rollout_id);
        if (score !== undefined) lines.push(`${encodeLine({ ...line, verifier_score: score })}\n`);
      }
    }
    await replaceFile(resolve(target), lines);
    printStatus(
      `${lines.length} of ${instances.size} instances have a best rollout; ${missing} judged rollouts have no score: ${resolve(target)}`,
    );
    return missing === 0 && lines.length === instances.size ? EXIT.allJudged : EXIT.someNotJudged;
  },
});

/** Returns the scores of all files by rollout id. Throws UsageError. */
export async function scoresOf(files: readonly string[]): Promise<Map<string, ScoreLine>> {
  const all = await Promise.all(files.map(readScores));
  return new Map(all.flatMap((scores) => [...scores]));
}

type Best = { rollout: string; score: number };

/** Compares scores. A hash of the rollout ids decides between equal scores, while best@k of `swefarm report` is their mean. */
const isBefore = (one: Best, other: Best): boolean =>
  one.score === other.score ? drawOf(one) < drawOf(other) : one.score > other.score;
const drawOf = ({ rollout }: Best): string => createHash('sha256').update(rollout).digest('hex');
