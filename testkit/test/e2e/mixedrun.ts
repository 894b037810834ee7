/** Runs a dataset of many families, and checks all rewards and the report by family. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@swefarm/shared';
import { startRedis, startScriptedPolicy } from '@swefarm/testkit';
import { expect } from 'vitest';
import { readLines, writeLines } from '../../src/lines.ts';
import { type DEEDS, deedsOf, type MixedInstance, rewardOf, scriptOf } from './mixedrows.ts';
import type { Line, Scene } from './scene.ts';

type Cut = { total: number; judged: number; mean_reward: number | null; instances: number };

/** Returns the expected figures of each family in the report. */
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

/** Returns how often the worker with this metrics port ran tests, by purpose. */
async function evaluations(port: number): Promise<Record<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const found = text.matchAll(/^swefarm_evaluation_runs_total\{purpose="(\w+)"\} (\d+)/gm);
  return Object.fromEntries([...found].map(([, purpose, count]) => [purpose, Number(count)]));
}

/** Runs the instances and fails unless all rewards are as expected. Returns how often tests ran, by purpose. */
export async function expectMixedRun(
  scene: Scene,
  instances: readonly MixedInstance[],
  deeds: readonly (typeof DEEDS)[number][],
): Promise<Record<string, number>> {
  const { folder, env } = scene;
  const tools = join(folder, 'tools');
  await mkdir(tools, { recursive: true });
  const output = join(folder, 'mixed.out.jsonl');
  const rows = instances.map(({ row }) => row);
  const dataset = await writeLines(join(folder, 'mixed.jsonl'), rows);
  await using policy = await startScriptedPolicy({ script: scriptOf(instances, deeds) });
  await using redis = await startRedis();
  Object.assign(env, { SWEFARM_REDIS_URL: redis.url, SWEFARM_PARSER_IMAGE: `host+dir:${tools}` });
  const port = await freePort();
  await using _worker = await scene.worker`--runtime rootfs --concurrency 3 --metrics-port ${port}`;
  // The instances have no health findings, and yet code that breaks the tests must be judged.
  await scene.done`submit --dataset ${dataset} --agent mini --output ${output} --policy-url ${policy.url}
    --model scripted --group-size ${deeds.length} --kind training`;
  const lines = await readLines<Line>(output);
  const found = lines.map((line) => [
    `${line.instance_id} ${line.rollout_index}`,
    [line.family, line.outcome, line.failure?.class ?? line.reward],
  ]);
  const expected = instances.flatMap((one, group) =>
    deedsOf(deeds, group).map((deed, index) => [
      `${one.id} ${index}`,
      [one.family, 'judged', rewardOf(one, deed)],
    ]),
  );
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
  expect(lines).toHaveLength(instances.length * deeds.length);
  const report = JSON.parse(await scene.done`report ${output} --json`);
  const families: Record<string, Cut> = report.families;
  const cuts = expectedCuts(instances, deeds);
  expect(Object.keys(families).toSorted()).toEqual(Object.keys(cuts).toSorted());
  expect(families).toMatchObject(cuts);
  expect(await scene.done`report ${output} --format table`).toContain('By family');
  return await evaluations(port);
}
