import { Command } from 'commander';
import { expect, test } from 'vitest';
import { COMMANDS } from './commands.ts';

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
