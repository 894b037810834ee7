import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DIALECTS, readerRow } from '../corpus.fixture.ts';
import type { Dialect } from '../parsers/reader.ts';
import { parserName, parserNames, readLog } from './registry.ts';

/** Artificial logs in every format; their maps come from the real harnesses (see test/differential). */
const FIXTURES = new URL('../../fixtures/', import.meta.url);
type Expected = Record<string, string> | string;
type Fixture = { parser: string; version?: string; expected: Record<string, Record<string, Expected>> };
const fixtures: Record<string, Fixture> = JSON.parse(
  readFileSync(new URL('expected.json', FIXTURES), 'utf8'),
);

const instance = (version: string) => readerRow({ version });

describe.each(Object.entries(fixtures))('%s', (name, { version, expected }) => {
  const log = readFileSync(new URL(`${name}.log`, FIXTURES), 'utf8');
  for (const [parser, dialects] of Object.entries(expected)) {
    for (const [dialect, wanted] of Object.entries(dialects)) {
      test(`${parser} as ${dialect} reads it`, () => {
        const map = typeof wanted === 'string' ? dialects[wanted.slice('as '.length)] : wanted;
        const row = readerRow(version === undefined ? {} : { version });
        const read = () => Object.fromEntries(readLog(parser, dialect as Dialect, log, row));
        if (typeof map === 'object' && '__raises__' in map)
          expect(read).toThrow(map.__raises__ as string | undefined);
        else expect(read()).toEqual(map);
      });
    }
  }
});

test('every parser of every harness has a log of its format', () => {
  const covered = new Set(Object.values(fixtures).flatMap((fixture) => Object.keys(fixture.expected)));
  // Two parsers select another parser by the number of the pull request, and `carbon` is an alias.
  const choosers = ['jekyll', 'immutable_js', 'carbon'];
  for (const dialect of DIALECTS) {
    // SWE-rebench V1 names the same readers by repositories.
    const names = parserNames(dialect).filter((name) => !name.includes('/'));
    expect(names.filter((name) => !covered.has(name) && !choosers.includes(name))).toEqual([]);
  }
});

test('parsers are found by both names, and only in their harness', () => {
  expect(parserName('parse_log_sphinx', '5.0.2')).toBe('pytest_v2');
  expect(parserName('requests', '4.1.0')).toBe('pytest_options');
  expect(parserName('pytest_pydantic', '4.1.0')).toBeNull();
  expect(parserName('openlayers', '4.1.0')).toBeNull();
  expect(parserName('constructor', '4.1.0')).toBeNull();
  expect(parserName('django/django', 'swe-rebench')).toBe('django/django');
  for (const name of ['parse_log_django', 'parse_log_jest', 'flask', 'nose/nose', 'toString'])
    expect(parserName(name, 'swe-rebench')).toBeNull();
  expect(parserName('parse_log_jest', 'swe-rebench-v2')).toBe('jest');
  expect(parserName('parse_log_django', 'swe-rebench-v2')).toBeNull();
  expect(parserName('python source', 'swe-bench-live')).toBeNull();
  expect(() => readLog('nose', '4.1.0', '', instance(''))).toThrow(/no log parser "nose"/);
});

test('a test may have the name of a property of Object', () => {
  const read = readLog('pytest', '4.1.0', 'PASSED __proto__\nPASSED constructor\n', instance(''));
  expect(Object.keys(Object.fromEntries(read))).toEqual(['__proto__', 'constructor']);
});

test('the pull request decides the runner of jekyll and immutable.js', () => {
  const at = (id: string) => ({ ...instance(''), instance_id: id });
  expect(readLog('jekyll', '4.1.0', 'A#b. = 0 s = .', at('jekyll__jekyll-9141')).get('A#b')).toBe('PASSED');
  expect(readLog('jekyll', '4.1.0', 'a crate ..F', at('jekyll__jekyll-8761')).get('a crate')).toBe('FAILED');
  expect(() => readLog('jekyll', '4.1.0', '', at('jekyll__jekyll-1'))).toThrow(RangeError);
  expect(readLog('immutable_js', '4.1.0', '✓ a', at('i__i-2006')).get('a')).toBe('PASSED');
  expect(readLog('immutable_js', '4.1.0', '[FAILED] a', at('i__i-2005')).get('a')).toBe('FAILED');
});
