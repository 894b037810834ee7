/** Many rollouts of 20 turns over our own example: the real fix or a wrong one, after commands that only look around. */
import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { loadScript, type Script, type ScriptInput } from '../../src/policy/script.ts';

const EXAMPLES = resolve(import.meta.dirname, '../../../examples/policy/examples.yaml');
export const EXAMPLE_ID = 'r1chardj0n3s__parse-1.20.2';
const TURNS = 20;

type Turn = Script['conversations'][number]['variants'][number][number];

/** Even rollout indexes resolve, odd ones hand in a wrong fix. @param first runs before all else */
export function twentyTurns(first?: string): ScriptInput {
  const conversation = loadScript(EXAMPLES).conversations.find(({ name }) => name?.startsWith('parse'));
  const commands = (variant: number): Turn[] =>
    conversation?.variants[variant]?.filter((turn) => turn.command !== undefined) ?? [];
  const looking = (count: number): Turn[] =>
    Array.from({ length: count }, (_, i) => ({
      command:
        ['ls', 'git status --short', 'wc -l parse.py', 'head -5 parse.py', 'grep -c def parse.py'][i % 5] ??
        'ls',
      thought: `Looking around, step ${i + 1}.`,
      repeat: 1,
    }));
  const variants = [0, 1].map((variant) => {
    const work = commands(variant);
    const before = first ? [{ command: first, repeat: 1 }] : [];
    return [
      ...before,
      ...looking(TURNS - 1 - before.length - work.length),
      ...work,
      { submit: true as const, repeat: 1 },
    ];
  });
  return { conversations: [{ variants }] };
}

/**
 * For many rollouts whose grading is not what is tested: their images have what the row installs once more before each run of its
 * tests, which is two thirds of what an evaluation costs. Answers the dataset's new path.
 */
export async function withoutInstall(dataset: string): Promise<string> {
  const rows = (await readFile(dataset, 'utf8')).split('\n').filter(Boolean);
  const path = dataset.replace(/\.jsonl$/, '.lean.jsonl');
  const lean = rows.map((row) => JSON.stringify({ ...JSON.parse(row), install: 'true' }));
  await writeFile(path, `${lean.join('\n')}\n`);
  return path;
}
