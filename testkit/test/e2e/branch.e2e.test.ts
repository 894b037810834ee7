/** Tests of `swefarm branch` and `swefarm shell` on a stored rollout of a real worker. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { readLines } from '../../src/lines.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { type Line, openScene } from './scene.ts';
import { EXAMPLE_ID, twentyTurns, withoutInstall } from './scripts.ts';

const SWEFARM = join(import.meta.dirname, '../../../producer/bin/swefarm.mjs');

type Credit = { turn: number; branches: number; rewarded: number; reward_mean: number | null };
type Exported = {
  messages: { role: string; weight?: number }[];
  swefarm: { branch_of: unknown; branch_rewards: Credit[] };
};

test('a stored rollout is continued by branches and opened by a shell', async () => {
  await using redis = await startRedis();
  const scene = openScene({ SWEFARM_REDIS_URL: redis.url, SWEFARM_RUNTIME: 'rootfs' });
  await using policy = await startScriptedPolicy({ script: twentyTurns('echo from turn 1 >made.txt') });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  const worker = await scene.worker`--concurrency 2 --worker-id ${`b-${process.pid}`}`;
  const run = await scene.submit`--dataset ${await withoutInstall(built.files.default)} --agent mini
    --policy-url ${policy.url} --model scripted --token-mode token-in --require-tokens --no-probe`;
  const { lines } = await scene.collect(run);
  expect(lines).toMatchObject([{ outcome: 'judged', turns: 20 }]);
  const rollout = `${join(scene.folder, `${run}.jsonl`)}#${EXAMPLE_ID}.0`;

  const answered = policy.stats().answered;
  const { run_id, branch_of } = JSON.parse(await scene.done`branch ${rollout} --at 12 --branches 2`);
  expect(branch_of).toEqual({ rollout_id: lines[0]?.rollout_id, turn: 12 });
  const branches = await scene.collect(run_id);
  expect(branches.lines).toMatchObject([0, 1].map(() => ({ outcome: 'judged', turns: 20, branch_of })));
  expect(policy.stats().answered).toBe(answered + 2 * 8);
  const file = join(scene.folder, `${run_id}.jsonl`);
  expect(await scene.done`show ${`${file}#${EXAMPLE_ID}.0`} --full`).toContain('behind turn 12');
  // Each branch trains only the answers after the shared turns.
  const exported = join(scene.folder, 'sft.jsonl');
  await scene.done`export ${file} --format sft-messages --out ${exported}`;
  for (const { messages } of await readLines<Exported>(exported)) {
    const answers = messages.filter(({ role }) => role === 'assistant');
    expect(answers.map(({ weight = 1 }) => weight)).toEqual([...Array(12).fill(0), ...Array(8).fill(1)]);
  }
  // An export of both files names the parent of each branch, and the mean reward of the branches of a turn.
  const whole = join(scene.folder, 'whole.jsonl');
  await scene.done`export ${join(scene.folder, `${run}.jsonl`)} ${file} --format sft-messages --out ${whole}`;
  const [parent, ...others] = await readLines<Exported>(whole);
  const { reward_mean } = parent?.swefarm.branch_rewards[0] ?? {};
  expect(parent?.swefarm).toMatchObject({
    ...{ branch_of: null, branch_rewards: [{ turn: 12, branches: 2, rewarded: 2 }] },
  });
  expect(reward_mean).toBe((branches.lines[0]?.reward ?? 0) / 2 + (branches.lines[1]?.reward ?? 0) / 2);
  for (const { swefarm } of others) expect(swefarm).toMatchObject({ branch_of, branch_rewards: [] });
  const late = await scene.swefarm`branch ${rollout} --at 20`;
  expect(late.code).toBe(2);
  expect(late.stderr).toContain('give a number from 1 to 19');

  const shell = await scene.swefarm`shell ${`${rollout}@3`} -- cat made.txt`;
  expect(shell.stderr).toContain('as it was after turn 3');
  expect(shell).toMatchObject({ code: 0, stdout: 'from turn 1\n' });
  expect(await scene.swefarm`shell ${`${rollout}@0`} -- test -e made.txt`).toMatchObject({ code: 1 });
  expect(await scene.swefarm`shell ${`${rollout}@40`}`).toMatchObject({ code: 2 });
  // The driver tests the shell on a terminal. `execFile` rejects if one of its assertions fails.
  const driver = [
    join(import.meta.dirname, 'terminal.py'),
    process.execPath,
    SWEFARM,
    'shell',
    `${rollout}@3`,
  ];
  const env = { PATH: process.env.PATH, ...scene.env };
  expect((await promisify(execFile)('python3', driver, { env })).stdout).toBe('terminal works\n');
  expect(await readLines<Line>(join(scene.folder, `${run}.jsonl`))).toHaveLength(1);
  expect(await worker.stop()).toBe(0);
  await scene.expectNothingLeft();
});
