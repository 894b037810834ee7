/** Imported patches are graded by `swefarm eval --from`, and stay marked as imported. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lines, row } from '@swefarm/datasets/test/rows.ts';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { expect, test } from 'vitest';
import { fakeWorker, linesOf, run } from './cli.ts';
import { aPatch } from './stored.ts';

test('predictions of another program are imported, graded and exported with their verdicts', async () => {
  const folder = await testFolder();
  const at = (name: string): string => join(folder, name);
  const ids = [0, 1].map((one) => `pallets__flask-${one}`);
  await writeFile(at('rows.jsonl'), lines(...ids.map((instance_id) => row({ instance_id }))));
  const prediction = (instance_id: string) => ({
    ...{ instance_id, model_name_or_path: 'theirs', model_patch: aPatch('2') },
  });
  await writeFile(at('preds.jsonl'), lines(...ids.map(prediction)));
  expect((await run(['import', 'preds', at('preds.jsonl'), '--output', at('imported.jsonl')])).code).toBe(0);
  const graded = await run([
    ...[
      'eval',
      '--dataset',
      at('rows.jsonl'),
      '--from',
      at('imported.jsonl'),
      '--output',
      at('graded.jsonl'),
    ],
    ...['--state-dir', at('state'), '--logs-dir', at('logs'), '--report-dir', folder],
    ...['--worker-command', fakeWorker('ok')],
  ]);
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
  expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('2 of them are imported') });
  expect(await linesOf(out)).toMatchObject(ids.map(prediction));
});
