import { describe, expect, test } from 'vitest';
import { CARD, VALUES } from './card.fixture.ts';
import { fillCard } from './fillcard.ts';
import { cardDigest, typedOptions } from './options.ts';
import { parseCard } from './readcard.ts';

const card = parseCard('card', CARD);

describe('fillCard', () => {
  test('fills command, environment, files, ends and outputs', () => {
    expect(fillCard(card, {}, VALUES)).toEqual({
      argv: ['/opt/swefarm/agents/toy/bin/toy', '--no-compact', '--', 'Fix "it": {key} $(date)'],
      env: {
        URL: 'http://127.0.0.1:5000/v1',
        KEY: 'key-1',
        PATH: '/opt/swefarm/agents/toy/bin:/usr/bin:/bin',
        BRACE: '{task}',
      },
      files: [{ path: '/run/home/toy.json', content: '{"model":"Qwen/Qwen3","deep":{"limit":4096}}' }],
      overflow: 'end',
      ends: [
        {
          exit: 0,
          field: { file: '/run/out/end.json', path: 'info.status', is: ['Submitted'] },
          status: 'submitted',
        },
        { exit: 'any', status: 'agent_error' },
      ],
      outputs: [{ path: '/run/out/log', as: 'log', max_mib: 1 }],
    });
  });

  test('adds what the value of an option adds', () => {
    const start = fillCard(card, { compact: 'true' }, VALUES);
    expect(start.argv).toEqual(['/opt/swefarm/agents/toy/bin/toy', '--', VALUES.task]);
    expect(start.env.COMPACT).toBe('4096');
    expect(start.overflow).toBe('tell');
  });

  test('appends the arguments of options without a place for them', () => {
    const plain = parseCard('card', { ...CARD, command: ['toy', '{effort}'] });
    expect(fillCard(plain, { effort: 'high' }, VALUES).argv).toEqual(['toy', 'high', '--no-compact']);
  });

  test('refuses a task that is too long for an argument, unless the card takes a file', () => {
    const task = 'ü'.repeat(61 * 1024);
    expect(() => fillCard(card, {}, { ...VALUES, task })).toThrow(/124928.*\{task_file\}/);
    const byFile = parseCard('card', { ...CARD, command: ['toy', '{task_file}'] });
    const { argv, files } = fillCard(byFile, {}, { ...VALUES, task });
    expect(argv[1]).toBe('/run/home/task.md');
    expect(files.at(-1)).toEqual({ path: '/run/home/task.md', content: task });
  });

  test('writes the file of an option, and gives its path to the program', () => {
    const own = { default: 'low.yaml', help: 'a configuration', file: 'own.yaml' };
    const withFile = parseCard('card', { ...CARD, command: ['toy', '{config}'], options: { config: own } });
    expect(fillCard(withFile, {}, VALUES).argv).toEqual(['toy', 'low.yaml']);
    const { argv, files } = fillCard(withFile, {}, VALUES, { config: 'a: {key}\n' });
    expect(argv).toEqual(['toy', '/run/home/own.yaml']);
    expect(files.at(-1)).toEqual({ path: '/run/home/own.yaml', content: 'a: {key}\n' });
    expect(() => fillCard(card, {}, VALUES, { effort: 'x' })).toThrow(
      /option effort of agent toy takes no file/,
    );
    expect(cardDigest(withFile, {}, { config: 'x' })).not.toBe(cardDigest(withFile));
  });

  test('removes null bytes of the task, and refuses a model that ends a text of JSON', () => {
    expect(fillCard(card, {}, { ...VALUES, task: 'a\0b' }).argv.at(-1)).toBe('ab');
    expect(() => fillCard(card, {}, { ...VALUES, model: 'a"b' })).toThrow(/"a"b" has a quote/);
  });
});

describe('typedOptions', () => {
  test('converts texts to the type of the default', () => {
    const numbers = parseCard('card', { ...CARD, options: { n: { default: 1, help: '' } } });
    expect(typedOptions(numbers, { n: '0.5' })).toEqual({ n: 0.5 });
    expect(typedOptions(card, { compact: 'false', effort: 7 })).toEqual({ compact: false, effort: '7' });
  });

  test.each([
    [{ compct: true }, /no option compct; did you mean compact\?/],
    [{ zzz: true }, /no option zzz; its options: compact, effort/],
    [{ compact: 'yes' }, /option compact of agent toy: expected true or false, got "yes"/],
    [{ effort: 'a"b' }, /expected a text without quotes/],
    [{ effort: '{key}' }, /expected a text without quotes/],
  ])('refuses %j', (given, message) => {
    expect(() => typedOptions(card, given)).toThrow(message);
  });
});

test('the digest of a card depends on values, not on the order of keys or on given defaults', () => {
  const other = parseCard('card', Object.fromEntries(Object.entries(CARD).reverse()));
  expect(cardDigest(other)).toBe(cardDigest(card));
  expect(cardDigest(card, { compact: 'false' })).toBe(cardDigest(card));
  expect(cardDigest(card, { compact: true })).not.toBe(cardDigest(card));
  expect(cardDigest({ ...card, version: '1.1' })).not.toBe(cardDigest(card));
});
