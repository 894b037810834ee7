/** Tests that eight unchanged real agents concurrently resolve an example with a scripted policy, in sandboxes without a network. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type BuiltExamples, buildExamples } from '../../src/examples/build.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { containersOf } from './leftovers.ts';
import {
  AGENTS,
  AGENTS_DIR,
  digestsOf,
  installAgents,
  linesOf,
  type ShownTrajectory,
  sentDigests,
  solvingTurns,
} from './realagents.ts';
import { type Line, openScene, type Scene } from './scene.ts';
import { EXAMPLE_ID, withoutInstall } from './scripts.ts';
import { type Used, watchAgents } from './watchedagents.ts';

type Found = Awaited<ReturnType<typeof installAgents>>;
let found: Found;
let built: BuiltExamples;
const rows: string[] = [];

beforeAll(async () => {
  found = await installAgents();
  built = await buildExamples({ ids: [EXAMPLE_ID], for: 'both', out: temporaryFolder('agents') });
}, 1_800_000);
afterAll(() => {
  const head = 'agent version runtime starts_s cpu_s peak_mb turns lines requests needs';
  if (rows.length > 0) process.stdout.write(`\n${head}\n${rows.join('\n')}\n`);
});

async function playedBy(scene: Scene, runs: ReadonlyMap<string, string>): Promise<Map<string, Line>> {
  const lines = new Map<string, Line>();
  for (const [agent, run] of runs) {
    const { code, stderr, lines: own } = await scene.collect(run);
    expect(code, stderr).toBe(0);
    for (const line of own) lines.set(agent, line);
  }
  return lines;
}

test('every agent that comes with swefarm can be installed', ({ skip }) => {
  if (found.missing.length > 0) skip(found.missing.join('; '));
  expect(found.installed).toEqual([...AGENTS]);
});

test.for(['docker', 'rootfs'] as const)('agents side by side on %s', async (runtime, { skip }) => {
  if (found.installed.length === 0) skip(found.missing.join('; '));
  const dataset = built.files[runtime];
  if (dataset === null) return skip('no Docker answers');
  await using redis = await startRedis();
  await using policy = await startScriptedPolicy({
    script: { conversations: [{ variants: [solvingTurns()] }] },
    record: true,
  });
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: runtime,
    SWEFARM_AGENTS_DIR: AGENTS_DIR,
    SWEFARM_CONCURRENCY: String(AGENTS.length),
  });
  const lean = await withoutInstall(dataset);
  const runs = new Map<string, string>();
  for (const agent of found.installed) {
    const run = await scene.submit`--dataset ${lean} --agent ${agent} --policy-url ${policy.url}
      --model scripted --token-mode token-in --require-tokens --step-limit 20`;
    runs.set(agent, run);
  }
  // The worker starts when all runs wait, and no agent gets an answer before all have asked: they work at the same time.
  await scene.done`policy set --state updating`;
  using watched = watchAgents(scene.folder, `real-${runtime}`);
  const worker = await scene.worker`--worker-id real-${runtime}`;
  onTestFinished(() => worker.kill('SIGKILL'));
  await expect.poll(() => watched.asking(), { timeout: 900_000, interval: 500 }).toBe(runs.size);
  const present = watched.left().map((line) => line.replace(/:.*/s, ''));
  expect(present).toEqual(expect.arrayContaining(['group']));
  expect(present.filter((line) => line.startsWith('process')).length).toBeGreaterThan(runs.size);
  await scene.done`policy set --state serving`;
  const needs = await scene.done`agents list`;
  for (const [agent, line] of await playedBy(scene, runs)) {
    expect(line, agent).toMatchObject({
      ...{ outcome: 'judged', resolved: true, reward: 1, attempt: 1, exit_status: 'submitted' },
      agent: { name: agent, exit_code: 0, lines: 1, masked: {}, whole: 0, repeated: 0, repaired: 0 },
    });
    expect(line.agent?.unknown_paths ?? {}, agent).toEqual({});
    const { rollout_id: id, instance_id, rollout_index, turns } = line;
    const shown = await scene.show(
      join(scene.folder, `${line.run_id}.jsonl#${instance_id}.${rollout_index}`),
    );
    const trajectory = shown.trajectory as unknown as ShownTrajectory;
    const sent = sentDigests(policy, { rollout_id: id });
    expect(sent, agent).toHaveLength(turns);
    expect(digestsOf(trajectory), agent).toEqual(sent);
    const used = watched.used(agent);
    expect(used.interfaces, agent).toBe('lo');
    const needed = needs.split('\n').find((row) => row.startsWith(`${agent} `));
    rows.push(rowOf(line, used, linesOf(trajectory).length, needed?.split(/ {2,}/).at(-1)));
  }
  expect(await worker.stop()).toBe(0);
  expect(await containersOf([`real-${runtime}`])).toEqual([]);
  await scene.expectNothingLeft();
  expect(watched.left()).toEqual([]);
});

const rowOf = ({ agent, runtime, turns }: Line, used: Used, lines: number, needs = ''): string =>
  [
    ...[agent?.name, agent?.version, runtime, used.startSeconds.toFixed(1), used.cpuSeconds.toFixed(1)],
    ...[used.peakMib, turns, lines, agent?.requests, needs.replaceAll(' ', '')],
  ].join(' ');
