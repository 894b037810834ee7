/** Tests minimum group sizes, deadlines, refills, drained nodes and cancelled groups, with the real commands. */

import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { conversation, running, type ScriptInput, type TurnInput } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { openScene } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

const LONG = running('sleep 600');
/** A rollout with an empty patch, which is judged without tests and so gives the fastest result. */
const QUICK = running();
const BROKEN: TurnInput[] = [{ fault: { kind: 'garbage' } }];

const scripted = (...variants: TurnInput[][]): { script: ScriptInput } => ({
  script: conversation(...variants),
});

test('groups, deadlines and refills end as configured; drain and cancel free everything', async () => {
  await using redis = await startRedis();
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_CONCURRENCY: '8',
    SWEFARM_DRAIN_GRACE_SECONDS: '10',
  });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  const submit = (policyUrl: string, ...flags: string[]): Promise<string> =>
    scene.submit`--dataset ${built.files.rootfs} --agent mini --policy-url ${policyUrl} --model scripted ${flags}`;
  const collect = async (run: string) => {
    const { code, stderr, lines } = await scene.collect(run);
    const ends = lines.map((one) => [one.rollout_index, `${one.outcome} ${one.reward_row}`]);
    return { code, lines, rows: Object.fromEntries(ends), output: stderr };
  };
  const startWorker = (name: string) => scene.worker`--worker-id ${name} --node node-${name}`;
  const one = await startWorker('one');

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
  const two = await startWorker('two');
  await scene.done`drain node-one`;
  while (slow.stats().answered < asked + 4) await sleep(100);
  await one.until(/"msg":"claiming nothing more for now"/);
  await scene.done`drain node-one --undo`;
  await one.until(/"msg":"claiming again"/);
  await scene.done`cancel ${run} --group ${EXAMPLE_ID}`;
  const cancelled = await collect(run);
  expect(cancelled.rows).toEqual({ 0: 'cancelled cancelled', 1: 'cancelled cancelled' });
  for (const line of cancelled.lines)
    expect(line).toMatchObject({ worker: 'two', attempt: 2, failure: null });

  expect(await Promise.all([one.stop(), two.stop()])).toEqual([0, 0]);
  await scene.expectNothingLeft();
});
