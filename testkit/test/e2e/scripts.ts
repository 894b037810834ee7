/** Scripts for rollouts of 20 turns on the example `parse`: the fix or a wrong fix, after commands that only read. */
import { resolve } from 'node:path';
import { readLines, writeLines } from '../../src/lines.ts';
import { conversation, loadScript, type ScriptInput, type TurnInput } from '../../src/policy/script.ts';

const EXAMPLES = resolve(import.meta.dirname, '../../../examples/policy/examples.yaml');
export const EXAMPLE_ID = 'r1chardj0n3s__parse-1.20.2';
const TURNS = 20;

/** Makes a script: even indices resolve, odd indices submit a wrong fix. @param first command of the first turn */
export function twentyTurns(first?: string): ScriptInput {
  const parse = loadScript(EXAMPLES).conversations.find(({ name }) => name?.startsWith('parse'));
  const looks = ['ls', 'git status --short', 'wc -l parse.py', 'head -5 parse.py', 'grep -c def parse.py'];
  const looking = (count: number): TurnInput[] =>
    Array.from({ length: count }, (_, i) => ({
      command: looks[i % looks.length] ?? 'ls',
      thought: `Looking around, step ${i + 1}.`,
    }));
  const variants = [0, 1].map((variant): TurnInput[] => {
    const work = parse?.variants[variant]?.filter((turn) => turn.command !== undefined) ?? [];
    const before = first ? [{ command: first }] : [];
    const count = TURNS - 1 - before.length - work.length;
    return [...before, ...looking(count), ...work, { submit: true }];
  });
  return conversation(...variants);
}

/**
 * Copies the dataset without install commands, and returns the new path. The images already have the installed packages, and the
 * installation takes two thirds of the time of an evaluation.
 */
export async function withoutInstall(dataset: string): Promise<string> {
  const rows = await readLines<object>(dataset);
  const lean = rows.map((row) => ({ ...row, install: 'true' }));
  return await writeLines(dataset.replace(/\.jsonl$/, '.lean.jsonl'), lean);
}
