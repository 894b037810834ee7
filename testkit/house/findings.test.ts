/** Tests that the list of findings names existing tests, so that no test of a fixed finding is moved or removed unnoticed. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, WORKSPACES } from './tree.ts';

const table = readFileSync(join(ROOT, 'docs/internals/findings.md'), 'utf8');
const named = [...table.matchAll(/`(\w+)(\/[^`]+)`/g)].flatMap(([, folder = '', rest = '']) =>
  WORKSPACES.includes(folder) ? [folder + rest] : [],
);

test('every file that the list of findings names exists', () => {
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('every finding has a row', () => {
  const series = { B: 9, F: 21, E: 5, R: 6, D: 9, N: 12 };
  const ids = Object.entries(series).flatMap(([letter, last]) =>
    Array.from({ length: last }, (_, at) => `${letter}${at + 1}`),
  );
  ids.push(...Array.from({ length: 8 }, (_, at) => `B10.${at + 1}`));
  const rows = new Set(
    table.split('\n').flatMap((line) => /^- ([A-Z]\d[^:]*): /.exec(line)?.[1]?.split(', ') ?? []),
  );
  expect(ids.filter((id) => !rows.has(id))).toEqual([]);
});
