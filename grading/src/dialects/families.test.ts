import { describe, expect, test } from 'vitest';
import { familyCases, readerRow, skipWithoutCases } from '../corpus.fixture.ts';
import type { Dialect } from '../parsers/reader.ts';
import { parserName, readLog } from './registry.ts';

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
  const cases = familyCases<{ status?: Record<string, string>; error?: string }>(file)
    .filter(({ expected, parser }) => parser !== 'verdict' && ('status' in expected || 'error' in expected))
    .filter(({ parser }) => !parser.startsWith('python-source'));

  test('is beside the repository', ({ skip }) => {
    skipWithoutCases(cases, skip);
    const otherwise = cases.filter((entry) => entry.case in OTHERWISE);
    console.info(`${file}: ${cases.length - otherwise.length} of ${cases.length} parser cases must be equal`);
    for (const entry of otherwise) console.info(`  ${entry.case}: ${OTHERWISE[entry.case]}`);
  });

  for (const entry of cases) {
    test(entry.case, () => {
      const { instance_id = 'own__repo-1', version = '' } = entry.rows;
      const instance = readerRow({ instance_id: String(instance_id), version: String(version) });
      const parser = NAMES[entry.parser] ?? entry.parser;
      expect(parserName(parser, dialect)).not.toBeNull();
      const read = () => Object.fromEntries(readLog(parser, dialect, entry.log, instance));
      if (entry.expected.error !== undefined) expect(read).toThrow();
      else expect(read()).toEqual(entry.expected.status);
    });
  }
});
