/** Tests that `swefarm eval --from` grades imported patches, whose lines remain marked as imported. */
import { writeFile } from 'node:fs/promises';
import { lines } from '@swefarm/datasets/test/rows.ts';
import { words } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { exited, fakeWorker, linesOf, run } from './cli.ts';
import { flaskRows } from './scene.ts';
import { aPatch } from './stored.ts';

test('predictions of another program are imported, graded and exported with their verdicts', async () => {
  const { folder, at, ids, dataset, state } = await flaskRows(2);
  const prediction = (instance_id: string) => ({
    ...{ instance_id, model_name_or_path: 'theirs', model_patch: aPatch('2') },
  });
  await writeFile(at('preds.jsonl'), lines(...ids.map(prediction)));
  expect((await run(['import', 'preds', at('preds.jsonl'), '--output', at('imported.jsonl')])).code).toBe(0);
  const graded = await run(words`
    eval --dataset ${dataset} --from ${at('imported.jsonl')} --output ${at('graded.jsonl')} --state-dir ${state}
    --logs-dir ${at('logs')} --report-dir ${folder} --worker-command ${fakeWorker('ok')}`);
  expect(graded).toMatchObject({ code: 0 });
  const found = await linesOf(at('graded.jsonl'));
  expect(found.map(({ instance_id }) => instance_id).sort()).toEqual(ids);
  for (const line of found) {
    expect(line).toMatchObject({ outcome: 'judged', imported: { format: 'preds', model: 'theirs' } });
    expect(line.report).not.toBe(null);
    expect(line.resolved).not.toBe(null);
  }
  const out = at('again.jsonl');
  const again = await run(['export', at('graded.jsonl'), '--format', 'preds', '--out', out]);
  expect(again).toMatchObject(exited(0, '2 of them are imported'));
  expect(await linesOf(out)).toMatchObject(ids.map(prediction));
});
