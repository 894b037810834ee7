import { expect, test } from 'vitest';
import { Replacements } from './replacements.ts';

/** Returns the ids that count, and expects the same ids for reversed lines. A line is `ID OUTCOME [REPLACED_ID]`. */
function counted(text: string): string {
  const lines = text.split(', ').map((line) => {
    const [rollout_id = '', outcome, replaces] = line.split(' ');
    return { rollout_id, outcome: outcome as 'judged', ...(replaces === undefined ? {} : { replaces }) };
  });
  const results = [lines, lines.toReversed()].map((order) => {
    const replacements = new Replacements();
    for (const line of order) replacements.note(line);
    return lines.flatMap(({ rollout_id: id }) => (replacements.isOutdated(id) ? [] : [id])).join(' ');
  });
  expect(results[1]).toEqual(results[0]);
  return results[0] ?? '';
}

test.each([
  ['one that was run again and judged', 'a failed, b judged a', 'b'],
  ['a judged one whose second run failed stays', 'a judged, b failed a', 'a'],
  ['of two that failed the second', 'a failed, b failed a', 'b'],
  ['of a chain the last that was judged', 'a judged, b failed a, c judged b', 'c'],
  ['of a chain of failures the last', 'a failed, b failed a, c cancelled b', 'c'],
  ['of a chain that failed after a verdict the verdict', 'a judged, b failed a, c failed b', 'a'],
  ['one whose earlier line is in no file', 'b failed a', 'b'],
  ['those that nobody ran again', 'a judged, b failed', 'a b'],
])('%s', (_title, lines, expected) => {
  expect(counted(lines)).toBe(expected);
});

test('lines that replace one another in a circle do not cause an endless loop', () => {
  expect(counted('a judged b, b judged a')).toBe('');
});
