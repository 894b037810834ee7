/**
 * Runs a folder of Harbor tasks on the farm, with the solution and with no work, and prints the rewards of the farm and of Harbor. FILE has
 * Harbor's outcomes as JSON: `{"outcomes": {"TASK oracle": {"rewards": {…} or null, "exception": …}}}`. Exits with 1 if rewards differ.
 *
 *   node testkit/harbor/compare.ts [--tasks DIR] [--expected FILE] [--runtime docker]
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeHarborBase, readLines, runCommand } from '../src/index.ts';

const AGENTS = { oracle: 'golden', nop: 'noop' } as const;
/** Exit code of a run in which some rollouts have no verdict. Some of our tasks cannot have a verdict. */
const SOME_NOT_JUDGED = 10;

type Rewards = Record<string, number> | null;
type Expected = Record<string, { rewards: Rewards; exception?: string | null }>;
type Line = {
  instance_id: string;
  reward_components?: Record<string, number>;
  failure: { class: string; message: string } | null;
};
export type Compared = { task: string; agent: string; expected: string; seen: string; equal: boolean };

export type Given = { tasks: string; expected: string; runtime: string };
export const OWN: Pick<Given, 'tasks' | 'expected'> = {
  tasks: join(import.meta.dirname, 'tasks'),
  expected: join(import.meta.dirname, 'expected.json'),
};

/** Runs all tasks with both agents. A task that the farm refuses counts as different. */
export async function compare({ tasks, expected: file, runtime }: Given): Promise<Compared[]> {
  const { outcomes } = JSON.parse(await readFile(file, 'utf8')) as { outcomes: Expected };
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-harbor-'));
  const compared: Compared[] = [];
  try {
    for (const [agent, own] of Object.entries(AGENTS)) {
      const expected = new Map(
        Object.entries(outcomes).flatMap(([key, outcome]) =>
          key.endsWith(` ${agent}`) && existsSync(join(tasks, key.slice(0, -agent.length - 1)))
            ? [[key.slice(0, -agent.length - 1), outcome] as const]
            : [],
        ),
      );
      const lines = await linesOf({ tasks, runtime, agent: own, folder }, expected);
      for (const [task, { rewards, exception }] of [...expected].sort()) {
        const line = lines.get(task);
        const seen = line?.failure ? null : (line?.reward_components ?? null);
        compared.push({
          ...{ task, agent, equal: line !== undefined && sameRewards(rewards, seen) },
          expected: rewards ? JSON.stringify(rewards) : `none: ${exception}`,
          seen: line ? describe(line, seen) : 'refused before the run',
        });
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return compared;
}

const describe = ({ failure }: Line, rewards: Rewards): string =>
  failure ? `none: ${failure.class}: ${failure.message.slice(0, 80)}` : JSON.stringify(rewards);

const sameRewards = (one: Rewards, other: Rewards): boolean =>
  JSON.stringify(one && Object.entries(one).sort()) === JSON.stringify(other && Object.entries(other).sort());

type Run = { tasks: string; runtime: string; agent: string; folder: string };

/** Runs all tasks once. Runs a task with several rewards and no key `reward` again with its first key. */
async function linesOf(run: Run, expected: ReadonlyMap<string, { rewards: Rewards }>) {
  const lines = new Map((await rollouts(run, [])).map((line) => [line.instance_id, line]));
  for (const [task, { rewards }] of expected) {
    const [key, ...more] = Object.keys(rewards ?? {});
    if (key === undefined || more.length === 0 || rewards?.reward !== undefined || !lines.has(task)) continue;
    for (const line of await rollouts(run, ['--ids', task, '--reward-key', key])) lines.set(task, line);
  }
  return lines;
}

async function rollouts({ tasks, runtime, agent, folder }: Run, more: readonly string[]): Promise<Line[]> {
  const output = join(folder, `${agent}-${more.join('-').replaceAll(/[^\w-]/g, '')}.jsonl`);
  const args = ['rollout', '--dataset', tasks, '--skip-ungradable', '--agent', agent, '--runtime', runtime];
  const flags = ['--concurrency', '2', '--output', output, ...more];
  const ended = await runCommand('swefarm', [...args, ...flags], {
    SWEFARM_STATE_DIR: join(folder, 'state'),
  });
  if (ended.code !== 0 && ended.code !== SOME_NOT_JUDGED) throw new Error(ended.stderr);
  return await readLines<Line>(output);
}

async function main(): Promise<void> {
  const options = {
    tasks: { type: 'string' },
    expected: { type: 'string' },
    runtime: { type: 'string' },
  } as const;
  const { values } = parseArgs({ options });
  await makeHarborBase();
  const compared = await compare({ ...OWN, runtime: 'docker', ...values });
  for (const { task, agent, expected, seen, equal } of compared)
    console.log(
      `${equal ? 'equal  ' : 'differs'} ${task} ${agent}\n    Harbor ${expected}\n    farm   ${seen}`,
    );
  const differing = compared.filter(({ equal }) => !equal).length;
  console.log(`${compared.length - differing} equal, ${differing} different`);
  process.exitCode = differing === 0 ? 0 : 1;
}

if (import.meta.main) await main();
