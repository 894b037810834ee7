/** When a group, a step or a node is done before its rollouts are: by the real commands, on sandboxes that do little. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { runCommand, type Started, startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import type { ScriptInput } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { endlessKeys, processesOf, scratchOf } from './leftovers.ts';
import { EXAMPLE_ID } from './scripts.ts';

type Turn = ScriptInput['conversations'][number]['variants'][number][number];

const LONG = [{ command: 'sleep 600' }, { submit: true as const }];
/** An empty patch is judged without a test: the quickest usable result. */
const QUICK = [{ submit: true as const }];
const BROKEN: Turn[] = [{ fault: { kind: 'garbage' } }];

const scripted = (...variants: Turn[][]): { script: ScriptInput } => ({
  script: { conversations: [{ variants }] },
});

async function rowsOf(output: string): Promise<Record<number, string>> {
  const lines = (await readFile(output, 'utf8')).split('\n').filter(Boolean);
  return Object.fromEntries(
    lines
      .map((line) => JSON.parse(line))
      .map((one) => [one.rollout_index, `${one.outcome} ${one.reward_row}`]),
  );
}

async function startWorker(name: string, env: Record<string, string>): Promise<Started> {
  const worker = startCommand('swefarm-worker', ['run', '--worker-id', name, '--node', `node-${name}`], env);
  await worker.until(/"msg":"ready"/);
  return worker;
}

test('groups, deadlines and refills end as asked; a drained node hands over, a cancelled group frees everything', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-groups-'));
  await using redis = await startRedis();
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_CONCURRENCY: '8',
    SWEFARM_DRAIN_GRACE_SECONDS: '10',
  };
  const submit = async (policyUrl: string, ...flags: string[]): Promise<string> => {
    const base = ['submit', '--dataset', built.files.rootfs, '--agent', 'mini', '--policy-url', policyUrl];
    const done = await runCommand('swefarm', [...base, '--model', 'scripted', ...flags], env);
    expect(done.code, done.stderr).toBe(0);
    return JSON.parse(done.stdout).run_id;
  };
  const collect = async (
    run: string,
  ): Promise<{ code: unknown; rows: Record<number, string>; output: string }> => {
    const output = join(folder, `${run}.jsonl`);
    const done = await runCommand('swefarm', ['collect', run, '--output', output], env);
    return { code: done.code, rows: await rowsOf(output), output: done.stderr };
  };
  const swefarm = async (...args: string[]): Promise<void> => {
    const done = await runCommand('swefarm', args, env);
    expect(done.code, done.stderr).toBe(0);
  };
  const one = await startWorker('one', env);

  await using mixed = await startScriptedPolicy(scripted(QUICK, QUICK, LONG, LONG));
  const enough = await collect(await submit(mixed.url, '--group-size', '4', '--min-group', '2'));
  const early = 'cancelled early_stop';
  expect(enough.rows).toEqual({ 0: 'judged empty_patch', 1: 'judged empty_patch', 2: early, 3: early });
  expect(enough.code, enough.output).toBe(0);
  expect(enough.output).toMatch(/2 cancelled \(mean turns: judged 1\.0, cancelled/);

  await using slow = await startScriptedPolicy(scripted(LONG));
  const late = await collect(await submit(slow.url, '--group-size', '2', '--deadline', '3s'));
  expect(late.rows).toEqual({ 0: 'cancelled deadline', 1: 'cancelled deadline' });
  expect(late.code, late.output).toBe(10);

  await using broken = await startScriptedPolicy(scripted(BROKEN, QUICK, QUICK));
  const flags = ['--group-size', '2', '--refills', '1', '--patience', '0'];
  const refilled = await collect(await submit(broken.url, ...flags));
  expect(refilled.rows).toEqual({ 0: 'failed failed', 1: 'judged empty_patch', 2: 'judged empty_patch' });
  expect(refilled.code, refilled.output).toBe(0);

  const asked = slow.stats().answered;
  const run = await submit(slow.url, '--group-size', '2');
  while (slow.stats().answered < asked + 2) await sleep(100);
  const two = await startWorker('two', env);
  await swefarm('drain', 'node-one');
  while (slow.stats().answered < asked + 4) await sleep(100);
  await one.until(/"msg":"claiming nothing more for now"/);
  await swefarm('drain', 'node-one', '--undo');
  await one.until(/"msg":"claiming again"/);
  await swefarm('cancel', run, '--group', EXAMPLE_ID);
  const cancelled = await collect(run);
  expect(cancelled.rows).toEqual({ 0: 'cancelled cancelled', 1: 'cancelled cancelled' });
  const lines = (await readFile(join(folder, `${run}.jsonl`), 'utf8')).split('\n').filter(Boolean);
  for (const line of lines)
    expect(JSON.parse(line)).toMatchObject({ worker: 'two', attempt: 2, failure: null });

  for (const worker of [one, two]) worker.kill('SIGTERM');
  expect([await one.exit, await two.exit]).toEqual([0, 0]);
  expect(await scratchOf(join(folder, 'scratch'))).toEqual([]);
  expect(await processesOf(join(folder, 'scratch'))).toEqual([]);
  expect(await endlessKeys(redis.url)).toEqual([]);
  await rm(folder, { recursive: true, force: true });
});
