/** Tests `swefarm rollout` as a process with its own Redis and a fake worker. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { startRedis, until, words } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { exited, fakeWorker, jsonLines, linesOf, processesOf, run, start } from './cli.ts';
import { farmOptions, flaskRows, startFakeWorker, twoLines } from './scene.ts';

async function prepare(rows = 3) {
  const scene = await flaskRows(rows);
  const { dataset, output, state } = scene;
  const common = words`--dataset ${dataset} --agent noop --state-dir ${state}`;
  const args = (mode: string, ...more: string[]) =>
    words`rollout ${common} --output ${output} --group-size 2 --worker-command ${fakeWorker(mode)} ${more}`;
  return { ...scene, common, args };
}

test('a whole run: lines, table, artifacts, nothing left running', async () => {
  const { at, output, args } = await prepare();
  const ran = await run(args('ok'));
  expect(ran).toMatchObject({ code: 0, stdout: '' });
  expect(ran.stderr).toMatch(/pallets__flask-2\s+1\/2\s+0\.50/);
  expect(ran.stderr).toMatch(/6 of 6 rollouts judged, 3 resolved \(50\.0 %\)/);
  const found = await linesOf(output);
  expect(found).toHaveLength(6);
  expect(await readFile(output, 'utf8')).toMatch(/"reward":1\.0,[^\n]*\n/);
  expect(found[0]?.artifact).toMatch(/^file:\/\/\/.*state\/runs\/.*\.json\.gz$/);

  const [runId = ''] = await readdir(at('state/runs'));
  expect(existsSync(at(`state/runs/${runId}/redis/server.json`))).toBe(false);

  const shown = await run(['show', `${output}#pallets__flask-1.0`, '--turns']);
  expect(shown.code).toBe(0);
  expect(shown.stdout).toContain('Fix it.␛[31m');
  expect(shown.stdout).toContain('patch of');
  const json = await run(['show', `${output}#${found[0]?.rollout_id}`]);
  expect(JSON.parse(json.stdout).facts.rollout_id).toBe(found[0]?.rollout_id);

  const refused = await run(args('ok'));
  expect(refused.code).toBe(2);
  const resumed = await run(args('ok', '--resume'));
  expect(resumed).toMatchObject({ code: 0 });
  expect(await linesOf(output)).toHaveLength(6);
});

test('failures: exit codes 10 and 11, and a group that is large enough', async () => {
  const { output, args } = await prepare(1);
  const failed = await run(args('fail'));
  expect(failed).toMatchObject(exited(10, /failed×1 policy\/policy_unreachable: refused/));
  expect((await linesOf(output)).find((line) => line.outcome === 'failed')).toMatchObject({ reward: null });
  expect((await run(args('fail', '--resume', '--min-group', '2'))).code).toBe(11);
  expect((await run(args('fail', '--resume', '--min-group', '1'))).code).toBe(0);
});

test('results to a pipe are JSON lines and nothing else', async () => {
  const { common } = await prepare(1);
  const ran = await run(['rollout', ...common, '--worker-command', fakeWorker('ok')]);
  expect(ran.code).toBe(0);
  expect(jsonLines(ran.stdout)).toMatchObject([{ outcome: 'judged' }]);
});

test('a worker that cannot start ends the run with its last word', async () => {
  const { args } = await prepare(1);
  const ran = await run(args('broken'));
  expect(ran).toMatchObject(
    exited(12, /no container engine answers at \/var\/run\/nothing\.sock.*its log: .*worker\.log/),
  );
});

test.each([
  [
    'podman',
    { CONTAINER_HOST: 'unix:///nowhere/podman.sock' },
    /\/nowhere\/podman\.sock: .*systemctl --user start podman\.socket.*--runtime rootfs/,
  ],
  [
    'docker',
    { DOCKER_HOST: 'unix:///nowhere/docker.sock' },
    /\/nowhere\/docker\.sock: start Docker.*docker_socket.*--runtime rootfs/,
  ],
  ['docker', { DOCKER_HOST: 'tcp://127.0.0.1:2375' }, /tcp:\/\/127\.0\.0\.1:2375 is not a Unix socket/],
  [
    'apptainer',
    { SWEFARM_APPTAINER_COMMAND: '/nowhere/apptainer' },
    /no usable runtime: apptainer: .*apptainer_command/,
  ],
])(
  'a %s that cannot be reached ends the run within seconds, with the remedy',
  async (runtime, env, told) => {
    const { common, output } = await prepare(1);
    const started = Date.now();
    const ran = await run(words`rollout ${common} --output ${output} --runtime ${runtime}`, env);
    expect(ran).toMatchObject(exited(12, told));
    expect(ran.stderr).not.toContain('starting it again');
    // The first start waits 3 s for an engine, instead of the default of 60 s.
    expect(Date.now() - started).toBeLessThan(30_000);
  },
  60_000,
);

test('a worker that dies is started again', async () => {
  const { output, args } = await prepare(3);
  const ran = await run(args('crash'));
  expect(ran.stderr).toMatch(/the local worker ended with exit code 1.*starting it again/);
  expect(ran.code).toBe(0);
  expect(await linesOf(output)).toHaveLength(6);
});

test('Ctrl-C drains and says how to go on; --resume finishes the same run', async () => {
  const { output, args } = await prepare(6);
  const running = start(args('slow'));
  await twoLines(output);
  running.child.kill('SIGINT');
  const ran = await running.ended;
  expect(ran).toMatchObject(exited(130, /draining/));
  expect(ran.stderr).toMatch(/continue with: .*--resume/);
  const before = await linesOf(output);
  expect(before.length).toBeLessThan(12);
  const resumed = await run(args('ok', '--resume'));
  expect(resumed.code).toBe(0);
  const after = await linesOf(output);
  expect(new Set(after.map((line) => line.rollout_id)).size).toBe(12);
  expect(after).toHaveLength(12);
  expect(new Set(after.map((line) => line.run_id)).size).toBe(1);
});

test('after kill -9 of the producer nothing of it runs, and --resume finishes its run', async () => {
  const { folder, output, args } = await prepare(6);
  const running = start(args('slow'));
  await twoLines(output);
  running.child.kill('SIGKILL');
  await running.ended;
  // The worker and Redis of the command end with it.
  await until(async () => (await processesOf(folder)).length === 0);
  const resumed = await run(args('ok', '--resume'));
  expect(resumed).toMatchObject({ code: 0 });
  const after = await linesOf(output);
  expect(after).toHaveLength(12);
  expect(new Set(after.map((line) => line.rollout_id)).size).toBe(12);
});

test('its Redis is killed and stays away: a clear end, and --resume finishes', async () => {
  const { at, output, args } = await prepare(6);
  const running = start(args('slow', '--redis-patience-seconds', '2'));
  await twoLines(output);
  const [runId = ''] = await readdir(at('state/runs'));
  const mark = await readFile(at(`state/runs/${runId}/redis/server.json`), 'utf8');
  process.kill(JSON.parse(mark).pid, 'SIGKILL');
  const ran = await running.ended;
  expect(ran).toMatchObject(exited(12, /Redis does not answer at redis:\/\/127\.0\.0\.1/));
  expect(ran.stderr).toMatch(/continue with: .*--resume/);
  expect(await run(args('ok', '--resume'))).toMatchObject({ code: 0 });
  const after = await linesOf(output);
  expect(after).toHaveLength(12);
  expect(new Set(after.map((line) => line.rollout_id)).size).toBe(12);
});

test('--resume with other settings is refused with a diff', async () => {
  const { args } = await prepare(2);
  expect((await run(args('ok'))).code).toBe(0);
  const ran = await run(args('ok', '--resume', '--step-limit', '7', '--first', '1'));
  expect(ran).toMatchObject(exited(2, /agent\.step_limit: 250 → 7/));
  expect(ran.stderr).toMatch(/dataset\.instances: 2 → 1/);
});

test('submit, collect and status by hand against a Redis', async () => {
  const { at, dataset, output } = await prepare(2);
  const farm = farmOptions();
  const submit = words`submit --dataset ${dataset} --agent noop --group-size 2 ${farm}`;
  const submitted = await run(submit);
  expect(submitted.code).toBe(0);
  const { run_id, rollouts, queued } = JSON.parse(submitted.stdout);
  expect([rollouts, queued]).toEqual([4, 4]);

  const again = await run([...submit, '--resume', run_id]);
  expect(JSON.parse(again.stdout)).toMatchObject({ run_id, rollouts: 4 });
  const status = JSON.parse((await run(['status', ...farm])).stdout);
  expect(status).toMatchObject({
    queue: { prioritized: 4 },
    workers: [],
    runs: [{ run_id, rollouts: 4, committed: 0 }],
  });

  startFakeWorker('ok', farm);
  const collected = await run(
    words`collect ${run_id} --output ${output} --copy-artifacts ${at('art')} ${farm}`,
  );
  expect(collected.code).toBe(0);
  expect(await linesOf(output)).toHaveLength(4);
  expect(await readdir(at('art'))).toHaveLength(4);
  const shown = await run(['show', `${run_id}.pallets__flask-0.0`, '--full', ...farm]);
  expect(shown.stdout).toMatch(/judged, resolved, reward 1\.0/);
  const doctor = await run(['doctor', ...farm]);
  expect(doctor.stdout).toMatch(/"status":"ok","subject":"redis"/);
});

test('the commands of a step wait for a Redis that starts later; Ctrl-C ends the wait', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const { dataset, output, folder } = await prepare(1);
  const farm = ['--redis-url', redis.url, '--state-dir', folder];
  await redis.kill();
  const submitting = start(['submit', '--dataset', dataset, '--agent', 'noop', ...farm]);
  const collecting = start(['collect', 'thisrun1', '--output', output, ...farm]);
  for (const { stderr } of [submitting, collecting]) {
    const waits = /^swefarm: Redis does not answer at .* Retrying for 60 s\.\n$/;
    await expect.poll(stderr, { timeout: 60_000 }).toMatch(waits);
  }
  collecting.child.kill('SIGINT');
  expect(await collecting.ended).toMatchObject({ code: 130, stdout: '' });
  await redis.restart();
  const submitted = await submitting.ended;
  expect(submitted).toMatchObject({ code: 0, stdout: expect.stringContaining('"queued":1') });
  expect(existsSync(output)).toBe(false);
});

test('the doctor names what is down and what to do', async () => {
  const ran = await run(words`doctor --redis-url redis://127.0.0.1:1 --policy-url http://127.0.0.1:1/v1`);
  expect(ran.code).toBe(12);
  const findings = jsonLines(ran.stdout);
  expect(findings.map((one) => [one.status, one.subject])).toEqual([
    ['fail', 'redis'],
    ['fail', 'policy endpoint'],
  ]);
  for (const one of findings) expect(one.remedy).toBeTruthy();
});
