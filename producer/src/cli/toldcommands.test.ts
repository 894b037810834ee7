/** Checks that every `swefarm …` command in docs, alerts, panels and error messages exists, with its flags. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { COMMANDS } from './commands.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FILES = [
  ...[
    '*.md',
    'docs/**/*.md',
    '{dashboards,slurm,helm,examples,bench,shared,policy,sandbox,grading,datasets,runs,trajectories,gateway,producer,worker}/*.md',
    'producer/python/*.md',
  ],
  ...[
    'dashboards/prometheus/alerts.yml',
    'dashboards/grafana/*.json',
    '{shared,policy,sandbox,grading,datasets,runs,trajectories,gateway,producer,worker}/src/**/*.ts',
    'helm/swefarm/templates/NOTES.txt',
  ],
];

/** Yields the words of each `swefarm NAME …`, up to a character that ends a command in a shell, in Markdown or in a string. */
function* commandsIn(text: string): Generator<string[]> {
  const joined = text.replaceAll(/\\\n\s*/g, ' ');
  for (const [, told = ''] of joined.matchAll(/(?<![\w./@-])swefarm ([a-z]+[^`|;\n#)"]*)/g))
    yield told.trim().split(/\s+/);
}

/** Returns whether the words have a flag. Prose also has the word `swefarm`, so words without a flag may be no command. */
const isCommand = (words: readonly string[]): boolean => words.some((word) => word.startsWith('--'));

async function program(): Promise<Command> {
  const all = new Command();
  for (const { name, load } of COMMANDS) (await load())(all, name);
  return all;
}

function problemOf(all: Command, words: readonly string[]): string | null {
  let command = all;
  for (const word of words) {
    const sub = command.commands.find((one) => one.name() === word);
    if (!sub) break;
    command = sub;
  }
  if (command === all) return `no command ${words[0]}`;
  for (const word of words) {
    const [flag] = /^--[a-z][a-z-]*/.exec(word) ?? [];
    const option = command.options.find(({ long }) => long === flag);
    if (flag !== undefined && flag !== '--help' && !option) return `${command.name()} has no ${flag}`;
    const value = words[words.indexOf(word) + 1] ?? '';
    const choices = option?.argChoices;
    if (choices && /^[a-z]+$/.test(value) && !choices.includes(value)) return `${word} takes no ${value}`;
  }
  return null;
}

test('commands that are told exist, and so do their flags', async () => {
  const all = await program();
  const wrong: string[] = [];
  let told = 0;
  for (const file of FILES.flatMap((pattern) => globSync(pattern, { cwd: ROOT }))) {
    if (/\.test\.ts$|CHANGELOG/.test(file)) continue;
    for (const words of commandsIn(readFileSync(join(ROOT, file), 'utf8'))) {
      if (!isCommand(words)) continue;
      told += 1;
      const problem = problemOf(all, words);
      if (problem !== null) wrong.push(`${file}: swefarm ${words.join(' ')}: ${problem}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(told).toBeGreaterThan(100);
});

test('a command that does not exist, and a flag that a command lacks, are found', async () => {
  const all = await program();
  const found = (text: string) => [...commandsIn(text)].map((words) => problemOf(all, words));
  expect(found('grade gold: `swefarm eval --agent golden`')).toEqual(['eval has no --agent']);
  expect(found('`swefarm evaluate --dataset x`')).toEqual(['no command evaluate']);
  expect(found('`swefarm dataset fetch NAME --output-dir x`')).toEqual([null]);
});
