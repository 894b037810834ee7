/** One run over a dataset of many families: every reward as expected, and a report by family. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@swefarm/shared';
import { runCommand, startCommand, startRedis, startScriptedPolicy } from '@swefarm/testkit';
import { expect } from 'vitest';
import { type DEEDS, deedsOf, type MixedInstance, rewardOf, scriptOf } from './mixedrows.ts';

type Line = {
  instance_id: string;
  rollout_index: number;
  outcome: string;
  reward: number | null;
  failure: { class: string } | null;
  family?: string;
};
type Cut = {
  total: number;
  judged: number;
  resolved: number;
  scored: number;
  mean_reward: number | null;
  instances: number;
};

/** What the report must say of each family. */
function expectedCuts(instances: readonly MixedInstance[], deeds: readonly (typeof DEEDS)[number][]) {
  const cuts: Record<string, Partial<Cut>> = {};
  for (const [family, own] of Map.groupBy(instances, (one) => one.family)) {
    const rewards = own.flatMap((one) => deeds.map((deed) => rewardOf(one, deed)));
    const mean = rewards.reduce((a, b) => a + b, 0) / rewards.length;
    cuts[family] = {
      ...{ total: rewards.length, judged: rewards.length, instances: own.length },
      mean_reward: expect.closeTo(mean, 9),
    };
  }
  return cuts;
}

/** A Redis, and a worker on rootfs. */
async function startFarm(given: Readonly<Record<string, string>>) {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const env = { ...given, SWEFARM_REDIS_URL: redis.url };
  const port = await freePort();
  const flags = ['--runtime', 'rootfs', '--concurrency', '3', '--metrics-port', String(port)];
  const worker = startCommand('swefarm-worker', ['run', ...flags], env);
  stack.defer(async () => {
    worker.kill('SIGTERM');
    await worker.exit;
  });
  await worker.until(/"msg":"ready"/);
  const owned = stack.move();
  return {
    env,
    /** How often tests ran, by purpose. */
    async evaluations(): Promise<Record<string, number>> {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const found = text.matchAll(/^swefarm_evaluation_runs_total\{purpose="(\w+)"\} (\d+)/gm);
      return Object.fromEntries([...found].map(([, purpose, count]) => [purpose, Number(count)]));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Returns how often tests ran, by purpose. */
export async function expectMixedRun(
  folder: string,
  instances: readonly MixedInstance[],
  deeds: readonly (typeof DEEDS)[number][],
): Promise<Record<string, number>> {
  const tools = join(folder, 'tools');
  await mkdir(tools, { recursive: true });
  const dataset = join(folder, 'mixed.jsonl');
  const output = join(folder, 'mixed.out.jsonl');
  await writeFile(dataset, instances.map(({ row }) => `${JSON.stringify(row)}\n`).join(''));
  await using policy = await startScriptedPolicy({ script: scriptOf(instances, deeds) });
  await using farm = await startFarm({
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_PARSER_IMAGE: `host+dir:${tools}`,
  });
  const { env } = farm;
  const args = [
    ...['submit', '--dataset', dataset, '--agent', 'mini', '--output', output],
    ...['--policy-url', policy.url, '--model', 'scripted'],
    ...['--group-size', String(deeds.length), '--kind', 'training'],
  ];
  const { code, stderr } = await runCommand('swefarm', args, env);
  // Code that breaks the tests is judged too, although nobody knows beforehand whether gold is healthy.
  expect(code, stderr).toBe(0);
  const lines = (await readFile(output, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line): Line => JSON.parse(line));
  const found = Object.fromEntries(
    lines.map((line) => [
      `${line.instance_id} ${line.rollout_index}`,
      [line.family, line.outcome, line.failure?.class ?? line.reward],
    ]),
  );
  const expected = Object.fromEntries(
    instances.flatMap((one, group) =>
      deedsOf(deeds, group).map((deed, index) => [
        `${one.id} ${index}`,
        [one.family, 'judged', rewardOf(one, deed)],
      ]),
    ),
  );
  expect(found).toEqual(expected);
  expect(lines).toHaveLength(instances.length * deeds.length);
  const report = await runCommand('swefarm', ['report', output, '--json'], env);
  const { families } = JSON.parse(report.stdout) as { families: Record<string, Cut> };
  const cuts = expectedCuts(instances, deeds);
  expect(Object.keys(families).toSorted()).toEqual(Object.keys(cuts).toSorted());
  expect(families).toMatchObject(cuts);
  const { stdout: table } = await runCommand('swefarm', ['report', output, '--format', 'table'], env);
  expect(table).toContain('By family');
  return await farm.evaluations();
}
