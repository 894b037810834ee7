import { Command, Option } from 'commander';
import { expect, test } from 'vitest';
import { choice, command, defaulted, flag, list, required, text, whole } from './declare.ts';

const OPTIONS = {
  '--output <file>': required(text('where')),
  '--n-times <k>': defaulted(whole('how often'), 3),
  '--form <form>': choice('which', ['a', 'b']),
  '--ids <ids>': list('which'),
  '--json': flag('as JSON'),
  '--no-probe': flag('without a probe'),
  farm: { made: () => [new Option('--redis-url <value>')] },
};

async function parse(...words: string[]): Promise<unknown[]> {
  const received: unknown[] = [];
  const declared = command({
    arguments: { '<run>': 'a run', '[more...]': 'others' },
    options: OPTIONS,
    example: 'none',
    async run(...given) {
      received.push(...given);
    },
  });
  const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  declared(program, 'try').copyInheritedSettings(program);
  await program.parseAsync(['try', ...words], { from: 'user' });
  return received;
}

test('a command receives its options and arguments by name', async () => {
  const given = ['--output', 'x', '--ids', 'a', '--ids', 'b', '--json', '--no-probe', '--redis-url', 'r'];
  expect(await parse('r1', 'r2', ...given, '--n-times', '5', '--form', 'b')).toEqual([
    {
      ...{ output: 'x', nTimes: 5, form: 'b', ids: ['a', 'b'], json: true, probe: false },
      farm: { redisUrl: 'r' },
    },
    { run: 'r1', more: ['r2'] },
  ]);
});

test('options that are not given have their defaults, and switches are off', async () => {
  const [values, given] = await parse('r1', '--output', 'x');
  expect(values).toEqual({
    ...{ output: 'x', nTimes: 3, form: undefined, ids: undefined, json: false, probe: true },
    farm: { redisUrl: undefined },
  });
  expect(given).toEqual({ run: 'r1', more: [] });
});

test.each([
  [['r1'], 'commander.missingMandatoryOptionValue'],
  [['r1', '--output', 'x', '--n-times', 'two'], 'commander.invalidArgument'],
  [['r1', '--output', 'x', '--form', 'c'], 'commander.invalidArgument'],
  [['--output', 'x'], 'commander.missingArgument'],
])('%j is refused', async (words, code) => {
  await expect(parse(...words)).rejects.toMatchObject({ code });
});
