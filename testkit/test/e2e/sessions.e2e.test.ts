/** A trainer's own agent loop over HTTP: gateway, worker and Redis as processes, a driver that repeats itself, lapses, or loses its worker. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { endlessKeys, processesOf, scratchOf } from './leftovers.ts';
import { EXAMPLE_ID } from './scripts.ts';
import { caller, patiently, type Reply, SESSION_TOKEN, startWorker } from './sessiondriver.ts';

test('a driver works through HTTP: gold earns 1, repeats run once, a lapsed lease frees, a lost worker is no reward', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-sessions-'));
  await using redis = await startRedis();
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  const [line = ''] = (await readFile(built.files.rootfs, 'utf8')).split('\n');
  const instance = JSON.parse(line) as { patch: string };
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_CONCURRENCY: '4',
    SWEFARM_GATEWAY_TOKEN: SESSION_TOKEN,
  };
  const serve = startCommand('swefarm', ['serve', '--port', '0'], env);
  await serve.until(/"url"/);
  const call = caller(JSON.parse(serve.stdout()).url);
  const names = ['one', 'two'].map((name) => `${name}${process.pid}`) as [string, string];
  const one = await startWorker(names[0], env);

  const open = async (request_id: string, more: Record<string, unknown> = {}): Promise<string> => {
    const { status, body } = await call('POST', '', { request_id, instance, ...more });
    expect(status, JSON.stringify(body)).toBe(200);
    return String(body.session_id);
  };
  const runCommand = (id: string, seq: number, command: string): Promise<Reply['body']> =>
    patiently(() => call('POST', `/${id}/commands`, { seq, command, wait_s: 20 }));
  const submit = (id: string): Promise<Reply['body']> =>
    patiently(() => call('POST', `/${id}/submit`, { wait_s: 20 }));

  // A whole trajectory, each call of which comes twice.
  const gold = await open('gold');
  expect(await open('gold')).toBe(gold);
  const count = 'echo x >> /tmp/runs; wc -l < /tmp/runs; pwd';
  const first = await runCommand(gold, 1, count);
  expect(first).toMatchObject({ state: 'answered', seq: 1, exit_code: 0 });
  expect(first.observation).toMatch(/1\n\/testbed/);
  expect(await runCommand(gold, 1, count)).toEqual(first);
  const patch = Buffer.from(instance.patch).toString('base64');
  expect(await runCommand(gold, 2, `echo ${patch} | base64 -d | git apply && git diff --stat`)).toMatchObject(
    {
      exit_code: 0,
    },
  );
  expect((await call('POST', `/${gold}/commands`, { seq: 2, command: 'ls' })).body).toMatchObject({
    error: { code: 'seq_differs', field: 'seq' },
  });
  expect((await call('POST', `/${gold}/commands`, { seq: 9, command: 'ls' })).status).toBe(409);
  const verdict = await submit(gold);
  expect(verdict).toMatchObject({
    state: 'ended',
    result: {
      judged: true,
      outcome: 'judged',
      reward: 1,
      resolved: true,
      exit_status: 'submitted',
      turns: 2,
    },
  });
  expect(await submit(gold)).toEqual(verdict);
  expect(await runCommand(gold, 3, 'ls')).toMatchObject({
    state: 'ended',
    end: 'submitted',
    result: { reward: 1 },
  });

  // An untouched tree, and a limit of the run.
  const limited = await open('limited', { agent: { step_limit: 1 } });
  expect(await runCommand(limited, 1, 'true')).toMatchObject({ state: 'answered' });
  expect(await submit(limited)).toMatchObject({
    result: { judged: true, reward: 0, exit_status: 'turn_limit' },
  });

  // A driver that is not heard of again, one that gives up, and one that only beats its heart.
  const lapsing = await open('lapsing', { lease_s: 2 });
  await runCommand(lapsing, 1, 'true');
  const deleted = await open('deleted');
  await runCommand(deleted, 1, 'true');
  expect((await call('DELETE', `/${deleted}`)).body).toMatchObject({ end: 'cancelled' });
  const renewed = await open('kept');
  await runCommand(renewed, 1, 'true');
  for (const [id, row] of [
    [lapsing, 'lease'],
    [deleted, 'cancelled'],
  ] as const) {
    await expect
      .poll(async () => (await call('GET', `/${id}`)).body.result, { timeout: 60_000, interval: 250 })
      .toMatchObject({ outcome: 'cancelled', judged: false, reward: null, reward_row: row });
  }
  expect(
    (await call('POST', '/heartbeat', { session_ids: [lapsing, deleted, renewed, 'sunknown'] })).body,
  ).toEqual({
    alive: [renewed],
  });

  // What is wrong is said, with the field.
  expect((await call('POST', '', { request_id: 'none' })).body).toMatchObject({
    error: { field: 'instance' },
  });
  expect(
    (await call('POST', '', { request_id: 'gold', instance: { ...instance, patch: '' } })).body,
  ).toMatchObject({
    error: { code: 'session_differs', field: 'request_id' },
  });
  expect((await call('POST', '', { request_id: 'x', instance, agent: { steps: 1 } })).body).toMatchObject({
    error: { field: 'agent.steps' },
  });
  expect((await call('POST', '/sunknown/commands', { seq: 1, command: 'ls' })).status).toBe(404);
  expect((await call('POST', `/${gold}/commands`, { seq: 'one', command: 'ls' })).body).toMatchObject({
    error: { field: 'seq' },
  });

  // Its worker dies in the middle of a command: nobody can run the first one again honestly.
  const running = runCommand(renewed, 2, 'sleep 600');
  await expect.poll(async () => (await call('GET', `/${renewed}`)).body.said).toBe(2);
  one.kill('SIGKILL');
  await one.exit;
  const two = await startWorker(names[1], env);
  expect(await running).toMatchObject({ state: 'ended' });
  expect(await submit(renewed)).toMatchObject({
    result: { judged: false, outcome: 'failed', reward: null, failure: { class: 'session_lost' } },
  });

  two.kill('SIGTERM');
  expect(await two.exit, two.stderr()).toBe(0);
  serve.kill('SIGTERM');
  expect(await serve.exit).toBe(0);
  expect(await scratchOf(env.SWEFARM_SCRATCH_DIR)).toEqual([]);
  expect(await processesOf(env.SWEFARM_SCRATCH_DIR)).toEqual([]);
  expect(await endlessKeys(redis.url)).toEqual([]);
  await rm(folder, { recursive: true, force: true });
});
