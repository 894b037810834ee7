/** Tests `swefarm export` of a run in Redis by its id. */
import { join } from 'node:path';
import { submit } from '@swefarm/runs';
import { instances, testConfig, testFarm, testFolder, testRecord } from '@swefarm/runs/test/farm.ts';
import { words } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, test } from 'vitest';
import { exited, linesOf, run } from './cli.ts';
import { farmVariables } from './scene.ts';

test('an export by run id has patches and messages, counts missing ones, refuses unknown ids', async () => {
  const config = testConfig();
  const farm = await testFarm(config);
  const all = instances(2);
  const record = testRecord(all, 2);
  const { rollouts } = await submit(farm, { record, instances: all });
  const ids = [...rollouts].sort();
  for (const id of ids) await commitRollout(farm, record, id);
  const folder = await testFolder();
  const env = farmVariables(config);
  const go = (name: string, ...more: string[]) =>
    run(['export', record.run_id, '--out', join(folder, name), ...more], env);

  const preds = await go('preds.jsonl', '--format', 'preds', '--per-instance', '1');
  expect(preds).toMatchObject(exited(0, '4 read, 2 exported of 2 instances'));
  const first = [ids[0], ids[2]].map((id) => `patch of ${id}`);
  const found = await linesOf(join(folder, 'preds.jsonl'));
  for (const patch of found.map(({ model_patch }) => model_patch)) {
    expect([...first, `patch of ${ids[1]}`, `patch of ${ids[3]}`]).toContain(patch);
  }
  expect(found.map(({ instance_id }) => instance_id).sort()).toEqual(['a__b-0', 'a__b-1']);

  const result = await farm.results.get(ids[3] ?? '');
  await farm.artifacts.remove(result?.artifact ?? '');
  const lines = await go('sft.jsonl', '--format', 'sft-messages');
  expect(lines).toMatchObject(exited(10, 'not exported: 1 whose artifact is gone'));
  expect(await linesOf(join(folder, 'sft.jsonl'))).toHaveLength(3);
  expect((await linesOf(join(folder, 'sft.jsonl')))[0]).toMatchObject({
    messages: [{ role: 'user', content: 'Fix it.\u001b[31m' }],
    swefarm: { run_id: record.run_id },
  });

  const unknown = await run(words`export nosuchrun --format preds --out ${join(folder, 'x.jsonl')}`, env);
  expect(unknown).toMatchObject(exited(2, 'neither a file nor a run'));
});
