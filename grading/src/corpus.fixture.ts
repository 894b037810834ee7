/** Reads recorded calls of the families' own code, with the results. Only some machines have these files beside the repository. */
import { existsSync, readFileSync } from 'node:fs';
import { expect, type TestContext } from 'vitest';
import type { Dialect, ReaderContext } from './parsers/reader.ts';

export type FamilyCase<E = Record<string, unknown>> = {
  case: string;
  parser: string;
  log: string;
  rows: Record<string, unknown>;
  expected: E;
};

/** Returns the cases of a family; none if the file is not beside the repository. */
export function familyCases<E = Record<string, unknown>>(file: string): FamilyCase<E>[] {
  const path = new URL(`../../../shared/grading/families/${file}.jsonl`, import.meta.url);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as FamilyCase<E>);
}

export function skipWithoutCases(cases: readonly unknown[], skip: TestContext['skip']): void {
  skip(cases.length === 0, '../shared/grading/families is not beside the repository');
  expect(cases.length).toBeGreaterThan(0);
}

export const DIALECTS: readonly Dialect[] = [
  '4.1.0',
  '5.0.2',
  'swegym',
  'swesmith',
  'r2e-gym',
  'swe-rebench',
  'swe-rebench-v2',
  'swe-lego',
  'swe-bench-live',
];

/** The fields of an instance that readers use. */
export const readerRow = (changes: Partial<ReaderContext['instance']> = {}): ReaderContext['instance'] => ({
  ...{ instance_id: 'own__repo-1', repo: 'own/repo', version: '1.0', test_patch: '' },
  ...changes,
});
