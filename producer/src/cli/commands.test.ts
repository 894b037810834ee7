import { Command } from 'commander';
import { expect, test } from 'vitest';
import { COMMANDS } from './commands.ts';

test.each(COMMANDS)('$name: its source adds the command of this name', async ({ name, load }) => {
  const program = new Command();
  const add = await load();
  add(program);
  expect(program.commands.map((command) => command.name())).toEqual([name]);
});

test.each(COMMANDS)(
  '$name: its summary is one clause, and stands in the list alone',
  async ({ summary, load }) => {
    expect(summary).toMatch(/^[a-z].*[^.]$/);
    const program = new Command();
    const add = await load();
    add(program);
    expect(program.commands[0]?.description()).toBe('');
  },
);
