/** Rebuilds the ids of lines, and compares them with what a policy was asked and sampled. */
import type { Line } from '@swefarm/shared';
import { expect } from 'vitest';
import type { Sample } from './scriptedpolicy.ts';

/** Returns prompt and generation of each turn of a line, rebuilt from the stored ids of the line and those before it. */
function wholeIds(line: Line, lines: readonly Line[]): { prompt: number[]; generation: number[] }[] {
  const before = line.from && lines.find(({ id }) => id === line.from?.line);
  const last = before && wholeIds(before, lines)[(line.from?.turns ?? 0) - 1];
  let seen = last ? [...last.prompt, ...last.generation] : [];
  return line.turns.map(({ tokens }) => {
    const prompt = [...seen.slice(0, tokens?.prefix_length), ...(tokens?.prompt_suffix ?? [])];
    const generation = Array.from(tokens?.generation ?? []);
    seen = [...prompt, ...generation];
    return { prompt, generation };
  });
}

/** Expects that each sample is one turn of one line, with its ids, and that each line is what the policy was asked and sampled. */
export function expectAllRecorded(lines: readonly Line[], samples: readonly Sample[]): void {
  const asked = new Map(samples.map((sample) => [sample.generation[0], sample]));
  const recorded = lines.flatMap((line) => wholeIds(line, lines));
  // Each sampled token has an id of its own, so equal turns are the same turn.
  expect(new Set(recorded.map(({ generation }) => generation[0])).size).toBe(samples.length);
  expect(recorded).toHaveLength(samples.length);
  for (const { prompt, generation } of recorded) {
    const sample = asked.get(generation[0]);
    expect([prompt, generation].map(isEqualTo([sample?.prompt, sample?.generation]))).toEqual([true, true]);
  }
  for (const { turns, messages, from, id } of lines) {
    for (const { message } of turns) expect(messages[message]?.role).toBe('assistant');
    if (from) expect(Number(from.line.slice(1))).toBeLessThan(Number(id.slice(1)));
    for (const { tokens } of from ? [] : turns.slice(0, 1)) expect(tokens?.prefix_length).toBe(0);
  }
}

/** Compares arrays of a hundred thousand ids, for which toEqual() takes seconds. */
const isEqualTo =
  (expected: readonly (Int32Array | undefined)[]) =>
  (ids: readonly number[], index: number): boolean => {
    const other = expected[index];
    return other?.length === ids.length && ids.every((id, at) => id === other[at]);
  };
