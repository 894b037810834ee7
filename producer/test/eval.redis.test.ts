/** Tests `swefarm eval --output` as a process that is killed, stopped and repeated: each prediction has one line and one report. */
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lines } from '@swefarm/datasets/test/rows.ts';
import { bareFacts, until, words } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { fakeWorker, linesOf, processesOf, run, start } from './cli.ts';
import { flaskId, flaskRows, twoLines } from './scene.ts';

const COUNT = 6;

async function prepare() {
  const { folder, at, ids, dataset, output, state } = await flaskRows(COUNT);
  const predictions = at('predictions.jsonl');
  const predict = (patch: string) =>
    writeFile(
      predictions,
      lines(...ids.map((instance_id) => ({ instance_id, model_name_or_path: 'm', model_patch: patch }))),
    );
  await predict('a patch');
  const common = words`eval --dataset ${dataset} --state-dir ${state} --logs-dir ${at('logs')} --report-dir ${folder}`;
  const args = (mode: string, ...more: string[]) =>
    words`${common} --predictions ${predictions} --output ${output} --worker-command ${fakeWorker(mode)} ${more}`;
  const reports = async (runId: string) => {
    const own = join(folder, 'logs', runId, 'm');
    const found = existsSync(own) ? await readdir(own) : [];
    return found.filter((id) => existsSync(join(own, id, 'report.json')));
  };
  return { folder, at, output, predict, common, args, reports };
}

async function whole(output: string): Promise<void> {
  const found = await linesOf(output);
  expect(found.map((line) => line.instance_id).sort()).toEqual(
    Array.from({ length: COUNT }, (_, at) => flaskId(at)),
  );
  expect(new Set(found.map((line) => line.run_id)).size).toBe(1);
}

test('kill -9, and the same command goes on, with or without its --run-id', async () => {
  const { folder, output, args, reports } = await prepare();
  const running = start(args('slow'));
  await twoLines(output);
  running.child.kill('SIGKILL');
  await running.ended;
  await until(async () => (await processesOf(folder)).length === 0);
  const [runId = ''] = await readdir(join(folder, 'logs'));
  // Removes the last line, as if the process had died between a report and its line.
  const text = await readFile(output, 'utf8');
  await writeFile(output, text.slice(0, text.trimEnd().lastIndexOf('\n') + 1));

  const again = await run(args('ok'));
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).toContain(`run ${runId}`);
  await whole(output);
  expect(await reports(runId)).toHaveLength(COUNT);
  const report = JSON.parse(await readFile(join(folder, `m.${runId}.json`), 'utf8'));
  expect(report).toMatchObject({ submitted_instances: COUNT, completed_instances: COUNT });

  const nothing = await run(args('broken', '--run-id', runId));
  expect(nothing.code, nothing.stderr).toBe(0);
  expect(nothing.stderr).toContain(`0 of ${COUNT} predictions to evaluate`);
  await whole(output);
});

test('Ctrl-C prints a command that goes on when it is pasted', async () => {
  const { output, args } = await prepare();
  const running = start(args('slow', '--run-id', 'mine'));
  await twoLines(output);
  running.child.kill('SIGINT');
  const stopped = await running.ended;
  expect(stopped.code).toBe(130);
  const advice = /open; continue with: npx swefarm (.+)/.exec(stopped.stderr)?.[1] ?? '';
  const words = advice.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", '')) ?? [];
  expect(words.slice(0, 2)).toEqual(['eval', '--dataset']);
  const again = await run(words);
  expect(again.code, again.stderr).toBe(0);
  await whole(output);
});

test('what was begun is not mixed with anything else', async () => {
  const { output, predict, args } = await prepare();
  expect((await run(args('ok', '--run-id', 'mine'))).code).toBe(0);
  const refused = async (output: RegExp, ...more: string[]) => {
    const ran = await run(args('ok', ...more));
    expect(ran.code, ran.stderr).toBe(2);
    expect(ran.stderr).toMatch(output);
    expect(ran.stderr).not.toContain('--resume');
  };
  await refused(/give --run-id mine to continue it, or choose another --output/, '--run-id', 'other');
  await refused(/other settings[\s\S]+timeout: 1800 → 60/, '--timeout', '60');
  await predict('another patch');
  await refused(/begun with other predictions/);
  await predict('a patch');
  await refused(/begun with other predictions/, '--ids', flaskId(0));
  await rm(`${output}.run.json`);
  await refused(/exists already; choose another --output/);
  await whole(output);
});

test('mended lines are gone on with too', async () => {
  const { folder, at, output, common, args } = await prepare();
  expect((await run(args('ok', '--run-id', 'first'))).code).toBe(0);
  const lost = (await linesOf(output)).map((line) => ({
    ...line,
    ...{ outcome: 'failed', resolved: null, reward: null, reward_row: 'failed' },
    failure: { stage: 'evaluation', class: 'evaluation_lost', message: 'gone', attempts: 3 },
    facts: bareFacts({ evaluation: 'not_run', resolved: null }),
  }));
  const [broken, mended] = [at('broken.jsonl'), at('mended.jsonl')];
  await writeFile(broken, lines(...lost));
  const mend = (mode: string) =>
    words`${common} --from ${broken} --output ${mended} --worker-command ${fakeWorker(mode)}`;
  const running = start(mend('slow'));
  await twoLines(mended);
  running.child.kill('SIGKILL');
  await running.ended;
  await until(async () => (await processesOf(folder)).length === 0);
  const again = await run(mend('ok'));
  expect(again.code, again.stderr).toBe(0);
  await whole(mended);
  expect((await linesOf(mended)).map((line) => line.rollout_id).sort()).toEqual(
    lost.map((line) => line.rollout_id).sort(),
  );
});
