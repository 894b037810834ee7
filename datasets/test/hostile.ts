/** Rows of all families with random faults, and a check of the result of reading them. */
import { Instance } from '@swefarm/shared';
import fc from 'fast-check';
import { expect } from 'vitest';
import { toInstance } from '../src/row.ts';
import { FAMILY_ROWS, UNGRADABLE_ROWS } from './familyrows.ts';
import { row as swebenchRow } from './rows.ts';

type Row = Record<string, unknown>;

const ROWS: readonly Row[] = [
  ...Object.values(FAMILY_ROWS),
  ...Object.values(UNGRADABLE_ROWS),
  swebenchRow(),
  swebenchRow({ image_assets: '{"problem_statement": ["https://x.example/a.png"]}' }),
  { ...swebenchRow(), repo: 'swesmith/acme__calc.12345678', instance_id: 'acme__calc.12345678.pr_7' },
];

const TEXTS = [
  '',
  ' ',
  '\u0000',
  "'",
  '[',
  '{"a":',
  "['a', ",
  '../..',
  '\n',
  '\u001b[31m',
  '$(reboot)',
  '__proto__',
  'null',
];
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(...TEXTS),
  fc.string({ maxLength: 40, unit: 'binary' }),
  fc.constantFrom(...'a[({"\'\\ \n').map((one) => one.repeat(200_000)),
);

/** One change: the place, as a share of all places of the row, and the new value. */
const change = fc.record({
  at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  how: fc.constantFrom('replace', 'remove', 'cut', 'add'),
  to: value,
});

/** A row of any family with one to four changes at any depth. */
export const hostileRow: fc.Arbitrary<Row> = fc
  .record({ row: fc.constantFrom(...ROWS), changes: fc.array(change, { minLength: 1, maxLength: 4 }) })
  .map(({ row, changes }) => {
    const copy = structuredClone(row);
    for (const one of changes) apply(copy, one);
    return copy;
  });

function apply(row: Row, { at, how, to }: { at: number; how: string; to: unknown }): void {
  const fields = fieldsOf(row);
  const field = fields[Math.floor(at * fields.length)];
  if (!field) return;
  const { parent, key } = field;
  const before = parent[key];
  // Lists in files have no holes.
  if (how === 'remove' && Array.isArray(parent)) parent.splice(Number(key), 1);
  else if (how === 'remove') delete parent[key];
  else if (how === 'cut' && typeof before === 'string') parent[key] = before.slice(0, before.length / 2);
  else if (how === 'add') parent[`${key}_more`] = to;
  else parent[key] = to;
}

function fieldsOf(value: unknown): { parent: Row; key: string }[] {
  if (value === null || typeof value !== 'object') return [];
  const parent = value as Row;
  return Object.keys(parent).flatMap((key) => [{ parent, key }, ...fieldsOf(parent[key])]);
}

/** Time limit of a row below a megabyte. */
const MOST_MS = 2_000;

/** Expects a valid instance, or problems with line, field, expectation and remedy, in bounded time. */
export function expectReadOrRefused(row: Row): void {
  const began = performance.now();
  const read = toInstance('line 7', row);
  expect(performance.now() - began).toBeLessThan(MOST_MS);
  if ('instance' in read) {
    expect(Instance.safeParse(read.instance).success).toBe(true);
    return;
  }
  expect(read.problems.length).toBeGreaterThan(0);
  for (const problem of read.problems) {
    expect(problem.where).toBe('line 7');
    expect(problem.field).not.toBe('');
    for (const text of [problem.expected, problem.found, problem.remedy]) expect(text).not.toBe('');
    expect(problem.found.length).toBeLessThan(400);
  }
}
