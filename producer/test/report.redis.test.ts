/** Tests reports and Gym's files of `swefarm rollout`. */

import { readFile, truncate, writeFile } from 'node:fs/promises';
import { readDataset } from '@swefarm/datasets';
import { words } from '@swefarm/testkit';
import { GymRow, gymFiles, instanceOf } from '@swefarm/trajectories';
import { expect, test } from 'vitest';
import { exited, fakeWorker, linesOf, run, start } from './cli.ts';
import { farmOptions, farmWithWorker, flaskRows, twoLines } from './scene.ts';

async function prepare() {
  const scene = await flaskRows(3);
  const { dataset, state, at } = scene;
  const output = at('X.jsonl');
  const gymConfig = at('gym.yaml');
  await writeFile(gymConfig, 'skip_if_exists: true\nstep_limit: 20\nconcurrency: 2\nenv: docker\n');
  const common = words`rollout --dataset ${dataset} --output ${output} --state-dir ${state}`;
  const args = (mode: string, ...more: string[]) =>
    words`${common} --agent noop --group-size 2 --worker-command ${fakeWorker(mode)} ${more}`;
  return { ...scene, output, gymConfig, files: gymFiles(output), args };
}

const keys = (rows: Record<string, unknown>[]) =>
  rows.map((one) => `${one._ng_task_index}/${one._ng_rollout_index}`).toSorted();

test("Gym's files have verdicts, failures, readable inputs, a profile and our report", async () => {
  const { dataset, output, files, args } = await prepare();
  const ran = await run(args('fail', '--output-format', 'gym'));
  expect(ran.code).toBe(10);
  const rows = await linesOf(output);
  expect(keys(rows)).toEqual(['0/1', '1/1', '2/1']);
  expect(rows[0]).toMatchObject({
    agent_ref: { type: 'responses_api_agents', name: 'swe_farm' },
    reward: 0,
    repo: 'pallets/flask',
    judged: true,
    response: { object: 'response', output: [] },
    instance_config: { mask_sample: false },
  });
  expect(await readFile(output, 'utf8')).toMatch(/"reward":0\.0,"mask_sample":false,"instance_config"/);
  const failures = await linesOf(files.failures);
  expect(keys(failures)).toEqual(['0/0', '1/0', '2/0']);
  expect(failures[0]).toMatchObject({ _ng_failure_class: 'policy_unreachable', mask_sample: false });
  const inputs = await linesOf(files.inputs);
  expect(keys(inputs)).toEqual(['0/0', '0/1', '1/0', '1/1', '2/0', '2/1']);
  const { instances } = await readDataset(dataset, {});
  expect(instanceOf(GymRow.parse(inputs[2]))).toEqual({ instance: instances[1], warnings: [] });
  const [entry] = JSON.parse(await readFile(files.metrics, 'utf8'));
  expect(entry).toMatchObject({
    agent_ref: { name: 'swe_farm' },
    key_metrics: { 'mean/reward': 0, judged: 3, total: 3, 'pass@1': 0 },
    group_level_metrics: [{ _ng_task_index: 0 }, { _ng_task_index: 1 }, { _ng_task_index: 2 }],
  });

  const report = JSON.parse((await run(['report', output, '--k', '1,2'])).stdout);
  expect(report).toMatchObject({
    expected: 6,
    total: 6,
    judged: 3,
    accuracy: 0,
    pass_at: { 1: 0, 2: null },
    failures: { 'policy/policy_unreachable': 3 },
    groups: { total: 3, complete: 0, size: 2 },
    by_repository: { 'pallets/flask': { judged: 3 } },
  });
  const shown = await run(['show', `${output}#pallets__flask-1.1`]);
  expect(JSON.parse(shown.stdout).facts.rollout_index).toBe(1);
});

test('--resume or skip_if_exists continues a killed collection at the missing siblings', async () => {
  const { output, gymConfig, files, args } = await prepare();
  const running = start(args('slow', '--output-format', 'gym', '--gym-config', gymConfig));
  await twoLines(output);
  running.child.kill('SIGKILL');
  await running.ended;
  await truncate(output, (await readFile(output)).length - 7);
  const other = await run(args('ok', '--gym-config', gymConfig));
  expect(other).toMatchObject(exited(2, /--output-format gym; give the same again/));
  const resumed = await run(args('ok', '--output-format', 'gym', '--gym-config', gymConfig));
  expect(resumed).toMatchObject({ code: 0 });
  const rows = await linesOf(output);
  expect(keys(rows)).toEqual(['0/0', '0/1', '1/0', '1/1', '2/0', '2/1']);
  expect(keys(await linesOf(files.inputs))).toEqual(keys(rows));
  const [entry] = JSON.parse(await readFile(files.metrics, 'utf8'));
  expect(entry.key_metrics).toMatchObject({ judged: 6, resolved: 3, 'pass@2': 1 });
  const differs = await run(
    args('ok', '--output-format', 'gym', '--gym-config', gymConfig, '--step-limit', '7'),
  );
  expect(differs.stderr).toMatch(/agent\.step_limit: 20 → 7/);
});

test("submit --output from a shell on the farm's workers; shards and runs have equal reports", async () => {
  const { at, dataset, output, files } = await prepare();
  const farm = farmWithWorker('ok');
  const ran = await run(words`
    submit --dataset ${dataset} --group-size 2 --kind training ${farm} --output ${output} --output-format gym
    --policy-url http://127.0.0.1:1/v1 --model m --policy-version 7 --no-probe --deadline 30m --min-group 1
    --temperature 0.8 --top-p 0.9 --max-tokens 64 --oversample 1 --refills 2 --max-staleness 1`);
  expect(ran).toMatchObject({ stdout: '', code: 0 });
  const rows = [...(await linesOf(output)), ...(await linesOf(files.failures))];
  expect(keys(rows)).toEqual([0, 1, 2].flatMap((task) => [0, 1, 2].map((index) => `${task}/${index}`)));
  expect(keys(await linesOf(files.inputs))).toEqual(keys(rows));
  expect((await linesOf(files.inputs))[0]).toMatchObject({
    responses_create_params: { model: 'm', temperature: 0.8, top_p: 0.9, max_output_tokens: 64 },
  });
  const plain = at('plain.jsonl');
  const { run_id = '' } = (rows[0]?.swefarm ?? {}) as { run_id?: string };
  expect((await run(['collect', run_id, '--output', plain, ...farm])).code).toBe(0);
  const reports = await Promise.all(
    [[output], [plain], [output, plain], [run_id]].map((names) => run(['report', ...names, ...farm])),
  );
  const [first, ...others] = reports.map(({ stdout }) => JSON.parse(stdout));
  expect(first).toMatchObject({ expected: 9, mean_turns: 12 });
  for (const other of others) expect(other).toEqual(first);
});

test('what is neither a file nor a run is refused, and so is Gym to a pipe', async () => {
  const farm = farmOptions();
  const nothing = await run(['report', 'nothing', ...farm]);
  expect(nothing).toMatchObject(exited(2, /neither a file nor a run/));
  const { args } = await prepare();
  const piped = await run([...args('ok', '--output-format', 'gym'), '--output', '-']);
  expect(piped).toMatchObject(exited(2, /add --output FILE\.jsonl/));
});
