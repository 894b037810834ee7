import { Command } from 'commander';
import { expect, test } from 'vitest';
import { COMMANDS } from './commands.ts';
import { textBelow } from './declare.ts';

test.each(COMMANDS)(
  '$name: its summary is one clause, in the list alone',
  async ({ name, summary, load }) => {
    expect(summary).toMatch(/^[a-z].*[^.]$/);
    const made = (await load())(new Command(), name);
    expect([made.name(), made.description()]).toEqual([name, '']);
  },
);

test.each(COMMANDS)('$name: its help ends with an example of itself', async ({ name, load }) => {
  const made = (await load())(new Command('swefarm'), name);
  for (const one of made.commands.length > 0 ? made.commands : [made]) {
    let shown = '';
    one.configureOutput({ writeOut: (text) => (shown += text) }).outputHelp();
    const path = one === made ? name : `${name} ${one.name()}`;
    expect(shown).toMatch(new RegExp(`\\nExample:\\n  swefarm ${path}\\b.*\\n$`));
  }
});

/** Returns the words of a command line, up to a pipe or a redirection. No example has a quote. */
const wordsOf = (line: string): string[] => (line.split(/ [|>] /)[0] ?? '').split(' ').slice(1);

test.each(COMMANDS)('$name: the parser accepts the example of its help', async ({ name, load }) => {
  const program = new Command('swefarm').exitOverride();
  const made = (await load())(program, name);
  for (const one of made.commands.length > 0 ? made.commands : [made]) {
    one.exitOverride().configureOutput({ writeErr: () => undefined });
    let parsed = 0;
    one.action(() => {
      parsed += 1;
    });
    await program.parseAsync(wordsOf(textBelow(one)?.example ?? ''), { from: 'user' });
    expect(parsed, textBelow(one)?.example).toBe(1);
  }
});
