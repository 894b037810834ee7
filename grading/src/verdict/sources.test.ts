import { bareInstance } from '@swefarm/testkit';
import { describe, expect, test } from 'vitest';
import type { Evidence, ProgramEnd } from './evidence.ts';
import { readOutcomes } from './outcomes.ts';

const evidence = (changes: Partial<Evidence> = {}): Evidence => ({
  log: '',
  exitCode: 0,
  files: new Map(),
  ...changes,
});

describe('a program', () => {
  const read = (form: 'tests' | 'map' | 'sets', program: ProgramEnd | undefined) =>
    readOutcomes(
      { outcomes: { from: 'program', files: {}, argv: ['x'], form, image: 'tools', timeout: 1 } },
      evidence({ program }),
      bareInstance(),
    );
  const output = (value: unknown): ProgramEnd => ({ output: JSON.stringify(value) });

  test.each([
    [
      'map',
      { a: 'pass', __proto__x: 'fail', b: 'skip' },
      [
        ['a', 'pass'],
        ['__proto__x', 'fail'],
        ['b', 'skip'],
      ],
    ],
    [
      'sets',
      { passed_tests: ['a'], failed_tests: ['b'], skipped_tests: ['c'], more: 1 },
      [
        ['a', 'PASS'],
        ['b', 'FAIL'],
        ['c', 'SKIP'],
      ],
    ],
    // A pass counts for a test that occurs twice.
    [
      'tests',
      {
        tests: [
          { name: 'a', status: 'FAILED' },
          { name: 'a', status: 'PASSED' },
          { name: 'a', status: 'ERROR' },
        ],
      },
      [['a', 'PASSED']],
    ],
    ['map', {}, []],
  ] as const)('in the form %s: %j', (form, value, pairs) => {
    const outcomes = read(form, output(value));
    expect(outcomes).toMatchObject({ readable: true, text: null });
    expect(outcomes.readable && [...outcomes.outcomes]).toEqual(pairs);
  });

  const UNREADABLE: ['tests' | 'map' | 'sets', ProgramEnd | undefined, RegExp][] = [
    ['map', undefined, /did not run/],
    ['map', { failed: 'it did not end in 8 s' }, /did not end in 8 s/],
    ['map', { output: '\u0000\u0001binary' }, /not JSON/],
    ['map', { output: '' }, /not JSON/],
    ['map', output([]), /not of the form "map"/],
    ['map', output({ a: 1 }), /not of the form "map" \(a\)/],
    ['map', output({ ['x'.repeat(4001)]: 'pass' }), /not of the form/],
    ['map', output({ a: 'p'.repeat(41) }), /not of the form/],
    ['tests', output({ a: 'pass' }), /not of the form "tests" \(tests\)/],
    ['tests', output({ tests: [{ name: 'a' }] }), /\(tests.0.status\)/],
    ['sets', output({ passed_tests: ['a'], failed_tests: ['a'], skipped_tests: [] }), /in two sets/],
    ['sets', output({ passed_tests: ['a'], failed_tests: [] }), /skipped_tests/],
    [
      'sets',
      output({ passed_tests: Array(200_001).fill('a'), failed_tests: [], skipped_tests: [] }),
      /passed_tests/,
    ],
  ];
  test.each(UNREADABLE.map(([form, program, why]) => [form, why, program] as const))(
    'without outcomes in the form %s has a reason: %s',
    (form, why, program) => {
      expect(read(form, program)).toEqual({
        readable: false,
        why: 'parser_failed',
        detail: expect.stringMatching(why),
      });
    },
  );
});

describe('a file with the reward', () => {
  const read = (text: string | null) =>
    readOutcomes(
      { outcomes: { from: 'reward', file: '/logs/reward' } },
      evidence({ files: new Map(text === null ? [] : [['/logs/reward', text]]) }),
      bareInstance(),
    );

  test.each([
    ['1', 1],
    [' 0.5\n', 0.5],
    ['-3.5e1', -35],
    ['+.25', 0.25],
    ['0', 0],
    ['1000', 1000],
  ])('%j is %d', (text, reward) => {
    expect(read(text)).toMatchObject({ readable: true, reward });
    expect(read(text)).not.toHaveProperty('parts');
  });

  test('an object gives the reward and its parts', () => {
    expect(read('{"reward": 0.75, "tests": 0.5, "style": 1}')).toMatchObject({
      readable: true,
      reward: 0.75,
      parts: { tests: 0.5, style: 1 },
    });
    expect(read('{"reward": 1}')).not.toHaveProperty('parts');
  });

  test.each([
    ...[
      '',
      ' ',
      'nan',
      'NaN',
      'inf',
      '-Infinity',
      '1e309',
      '0x10',
      '1_0',
      'yes',
      'null',
      '[1]',
      '"1"',
      'true',
    ],
    ...[
      '1000.1',
      '-1e9',
      '{}',
      '{"reward": null}',
      '{"reward": "1"}',
      '{"reward": true}',
      '{"reward": 1e309}',
    ],
    ...['{"reward": 1, "note": "x"}', '{"reward": 1', '{"a": 1}', `{"reward": 1, "${'n'.repeat(65)}": 1}`],
    ...[
      `{"reward": 1${Array.from({ length: 17 }, (_, n) => `, "p${n}": 0`).join('')}}`,
      `1${' '.repeat(10)}2`,
    ],
    ...['9'.repeat(100_000)],
  ])('%j is no reward, and not 0', (text) => {
    expect(read(text)).toMatchObject({ readable: false, why: 'no_reward' });
  });

  test('a missing file gives no reward', () => {
    expect(read(null)).toMatchObject({ why: 'no_reward', detail: expect.stringMatching(/not there/) });
  });
});
