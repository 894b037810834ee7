import { Command } from 'commander';
import { expect, test } from 'vitest';
import { workerProgram } from './commandline.ts';

test.each(workerProgram(AbortSignal.abort()).commands.map((one) => one.name()))(
  '%s: its help ends with an example, which the parser accepts',
  async (name) => {
    const program = workerProgram(AbortSignal.abort());
    const one = program.commands.find((command) => command.name() === name) ?? new Command();
    let shown = '';
    one.configureOutput({ writeOut: (text) => (shown += text) }).outputHelp();
    const [, example = ''] = /\nExample:\n {2}(swefarm-worker .*)\n$/.exec(shown) ?? [];
    let parsed = '';
    one.action(() => {
      parsed = name;
    });
    await program.parseAsync(example.split(' ').slice(1), { from: 'user' });
    expect(parsed).toBe(name);
  },
);
