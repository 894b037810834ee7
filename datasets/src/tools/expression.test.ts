import { expect, test } from 'vitest';
import { parseCriterion } from './expression.ts';

const row = new Map<string, unknown>([
  ['FAIL_TO_PASS', ['a', 'b', 'c']],
  ['repo', 'pallets/flask'],
  ['version', null],
  ['n', 2],
  ['text', `${'a'.repeat(60)}!`],
  ['many', Array.from({ length: 3_000 }, (_, index) => String(index))],
]);
const matches = (text: string): boolean => parseCriterion(text).matches(row, 'line 1');

test.each<[string, boolean]>([
  ['size(FAIL_TO_PASS) >= 2 && size(FAIL_TO_PASS) <= 5 && repo in ["pallets/flask", "a/b"]', true],
  ['between(len(FAIL_TO_PASS), 2, 5)', true],
  ['between(n, 3, 5)', false],
  ['n == 2 && n < 2.5', true],
  ['version == null', true],
  ['repo.startsWith("pallets/") && !(repo == "a/b")', true],
  ['FAIL_TO_PASS.exists(t, t == "b")', true],
  ['repo.matches("^pallets/")', true],
])('%s is %s', (text, expected) => expect(matches(text)).toBe(expected));

test('the variables of an expression are known before any row is read', () => {
  expect([...parseCriterion('size(FAIL_TO_PASS) > 1 && repo in [name, "x"]').names].toSorted()).toEqual([
    'FAIL_TO_PASS',
    'name',
    'repo',
  ]);
});

test.each<[string, RegExp]>([
  ['n >', /at character \d+/],
  ['n > 1 and repo == "x"', /at character 7.*CEL writes &&/s],
  ['size(FAIL_TO_PASS)', /gives int; expected true or false/],
  ['version > 1', /line 1: the expression fails at character 1.*version != null/s],
  ['between(version, 1, 2)', /three numbers or three texts, not null/],
  ['repo > 1', /line 1: the expression fails at character 1/],
  ['missing == 1', /Unknown variable: missing/],
  [`${'('.repeat(200)}true${')'.repeat(200)}`, /depth/i],
])('%s is refused with the position of the fault', (text, message) =>
  expect(() => matches(text)).toThrow(message),
);

test('an expression has access to the row only', () => {
  for (const text of [
    'constructor == 1',
    'repo.constructor == 1',
    'FAIL_TO_PASS.__proto__ == 1',
    'globalThis == 1',
    'process.exit(1) == 1',
    'this == 1',
    'toString == 1',
  ]) {
    expect(() => matches(text), text).toThrow(/the expression fails/);
  }
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test.each(['text.matches("^(a+)+$")', 'many.exists(a, many.exists(b, many.exists(c, a + b == c + "x")))'])(
  '%s ends after a second',
  (text) => {
    const begun = performance.now();
    expect(() => matches(text)).toThrow(/takes more than 1 s/);
    expect(performance.now() - begun).toBeLessThan(60_000);
  },
);
