/** Compares the lines of a rollout with what a real vLLM was asked, by its own log, and with what it sampled. */
import assert from 'node:assert/strict';
import { cumulative } from '@swefarm/policy';
import { linesOf, ownTurns, type Trajectory } from '@swefarm/shared';
import type { Answered } from './guide.ts';

export type LineCounts = {
  lines: number;
  turns: number;
  /** Turns whose prompt is all tokens of an earlier answer and what follows. */
  continued: number;
  repaired: number;
  /** Sampled tokens that are trained on. */
  trained: number;
  /** Sampled tokens that are not, by reason. */
  masked: Record<string, number>;
};

/**
 * Throws AssertionError unless each turn is one request of the server with its prompt and its sampled ids, each request is in one line, and
 * each continued prompt begins with all ids before it.
 */
export function compareLines(
  trajectory: Trajectory,
  answers: readonly Answered[],
  prompts: ReadonlyMap<string, readonly number[]>,
): LineCounts {
  const lines = linesOf(trajectory);
  const counts: LineCounts = { lines: lines.length, ...NOTHING, masked: {} };
  const recorded: string[] = [];
  for (const line of lines) {
    const first = line.shared.turns;
    let seen: number[] = [];
    for (const [index, { prompt, generation }] of [
      ...cumulative(line.turns.map(({ tokens }) => tokens)),
    ].entries()) {
      const { request } = line.turns[index] ?? {};
      const isContinued = request?.matched === 'continued';
      assert.equal(isContinued, index > 0, `turn ${index + 1} of ${line.id} is ${request?.matched}`);
      assert(
        seen.every((id, at) => id === prompt[at]),
        `turn ${index + 1} of ${line.id}: a break`,
      );
      seen = [...prompt, ...generation];
      if (index < first) continue;
      recorded.push(textOf(prompt, generation));
      if (isContinued) counts.continued++;
      if (request?.repaired) counts.repaired++;
      if (line.masked === null) counts.trained += generation.length;
      else counts.masked[line.masked] = (counts.masked[line.masked] ?? 0) + generation.length;
    }
    counts.turns += ownTurns(line).length;
  }
  const asked = answers.map(({ id, ids }) => textOf(prompts.get(id) ?? [], ids));
  assert.equal(recorded.length, asked.length, 'number of turns and of requests');
  // The lists are not printed: a difference would have megabytes.
  assert(recorded.sort().join('\n') === asked.sort().join('\n'), 'a line is not what the server was asked');
  const sampled = answers.reduce((sum, { ids }) => sum + ids.length, 0);
  assert.equal(counts.trained + sumOf(counts.masked), sampled, 'tokens of all lines');
  return counts;
}

const NOTHING = { turns: 0, continued: 0, repaired: 0, trained: 0 };

const sumOf = (numbers: Record<string, number>): number =>
  Object.values(numbers).reduce((sum, number) => sum + number, 0);

const textOf = (prompt: Iterable<number>, generation: Iterable<number>): string =>
  `${[...prompt].join()} > ${[...generation].join()}`;

/** Returns the counts of several rollouts as a text. */
export function textOfCounts(all: readonly LineCounts[]): string {
  const sum = (count: Exclude<keyof LineCounts, 'masked'>): number =>
    all.reduce((total, counts) => total + counts[count], 0);
  const masked = new Map<string, number>();
  for (const [why, tokens] of all.flatMap((counts) => Object.entries(counts.masked)))
    masked.set(why, (masked.get(why) ?? 0) + tokens);
  const reasons = [...masked].map(([why, tokens]) => `${tokens} ${why}`).join(', ') || 'none';
  return `${all.length} rollouts, ${sum('turns')} turns in ${sum('lines')} lines, ${sum('continued')} continued (${sum('repaired')} after a repaired echo), ${sum('trained')} sampled tokens trained on, masked: ${reasons}`;
}
