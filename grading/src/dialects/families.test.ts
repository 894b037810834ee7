import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Dialect } from '../parsers/reader.ts';
import { parserName, readLog } from './registry.ts';

/** Calls of other families' parsers with their results, on machines that have them beside the repository. */
const CORPUS = new URL('../../../../shared/grading/families/', import.meta.url);
type Case = {
  case: string;
  parser: string;
  log: string;
  rows: Record<string, unknown>;
  expected: { status?: Record<string, string>; error?: string };
};

const FAMILIES: [file: string, dialect: Dialect][] = [
  ['swe-rebench', 'swe-rebench'],
  ['swe-rebench-v2', 'swe-rebench-v2'],
  ['r2e-gym', 'r2e-gym'],
  ['swe-lego', 'swe-lego'],
  ['swe-bench-live', 'swe-bench-live'],
  ['multimodal-multilingual', '5.0.2'],
];

/** Names of the corpus that are not names of parsers. */
const NAMES: Record<string, string> = { 'prime-pytest-rA': 'pytest_rA' };

/** Intended differences, with their reasons. */
const OTHERWISE: Record<string, string> = {};

describe.each(FAMILIES)('%s', (file, dialect) => {
  const path = new URL(`${file}.jsonl`, CORPUS);
  const here = existsSync(path);
  const cases: Case[] = here
    ? readFileSync(path, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Case)
        .filter(
          ({ expected, parser }) => parser !== 'verdict' && ('status' in expected || 'error' in expected),
        )
        .filter(({ parser }) => !parser.startsWith('python-source'))
    : [];

  test('is beside the repository', ({ skip }) => {
    skip(!here, '../shared/grading/families is not beside the repository');
    expect(cases.length).toBeGreaterThan(0);
    const otherwise = cases.filter((entry) => entry.case in OTHERWISE);
    console.info(`${file}: ${cases.length - otherwise.length} of ${cases.length} parser cases must be equal`);
    for (const entry of otherwise) console.info(`  ${entry.case}: ${OTHERWISE[entry.case]}`);
  });

  for (const entry of cases) {
    test(entry.case, () => {
      const instance = {
        instance_id: String(entry.rows.instance_id ?? 'own__repo-1'),
        repo: 'own/repo',
        version: String(entry.rows.version ?? ''),
        test_patch: '',
      };
      const parser = NAMES[entry.parser] ?? entry.parser;
      expect(parserName(parser, dialect)).not.toBeNull();
      const read = () => Object.fromEntries(readLog(parser, dialect, entry.log, instance));
      if (entry.expected.error !== undefined) expect(read).toThrow();
      else expect(read()).toEqual(entry.expected.status);
    });
  }
});
