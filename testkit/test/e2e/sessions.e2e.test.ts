/** Tests sessions over HTTP with gateway, worker and Redis as processes: a driver repeats calls, stops responding, or loses its worker. */
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { EXAMPLE_ID } from './scripts.ts';
import { startSessions } from './sessiondriver.ts';

test('a driver over HTTP: gold earns 1, repeats run once, lapsed leases free, losses earn none', async () => {
  await using stack = new AsyncDisposableStack();
  const { scene, gateway, call, open: openSession, run, submit } = await startSessions(stack, 4);
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  const [instance] = built.rows;
  if (!instance) throw new Error(`${EXAMPLE_ID} was not built`);
  const open = (id: string, more: object = {}) => openSession(id, instance, more);
  const names = ['one', 'two'].map((name) => `${name}${process.pid}`) as [string, string];
  const one = await scene.worker`--worker-id ${names[0]}`;

  // A complete trajectory, in which each call is made twice.
  const gold = await open('gold');
  expect(await open('gold')).toBe(gold);
  const count = 'echo x >> /tmp/runs; wc -l < /tmp/runs; pwd';
  const first = await run(gold, 1, count);
  expect(first).toMatchObject({ state: 'answered', seq: 1, exit_code: 0 });
  expect(first.observation).toMatch(/1\n\/testbed/);
  expect(await run(gold, 1, count)).toEqual(first);
  const patch = Buffer.from(instance.patch).toString('base64');
  const apply = `echo ${patch} | base64 -d | git apply && git diff --stat`;
  expect(await run(gold, 2, apply)).toMatchObject({ exit_code: 0 });
  const again = await call('POST', `/${gold}/commands`, { seq: 2, command: 'ls' });
  expect(again.body).toMatchObject({ error: { code: 'seq_differs', field: 'seq' } });
  expect((await call('POST', `/${gold}/commands`, { seq: 9, command: 'ls' })).status).toBe(409);
  const verdict = await submit(gold);
  const judged = { judged: true, outcome: 'judged', reward: 1, resolved: true };
  expect(verdict).toMatchObject({
    state: 'ended',
    result: { ...judged, exit_status: 'submitted', turns: 2 },
  });
  expect(await submit(gold)).toEqual(verdict);
  const late = await run(gold, 3, 'ls');
  expect(late).toMatchObject({ state: 'ended', end: 'submitted', result: { reward: 1 } });

  // An untouched tree, and a session that reaches its step limit.
  const limited = await open('limited', { agent: { step_limit: 1 } });
  expect(await run(limited, 1, 'true')).toMatchObject({ state: 'answered' });
  expect(await submit(limited)).toMatchObject({
    result: { judged: true, reward: 0, exit_status: 'turn_limit' },
  });

  // One driver stops responding, one deletes its session, and one only sends heartbeats.
  const lapsing = await open('lapsing', { lease_s: 2 });
  await run(lapsing, 1, 'true');
  const deleted = await open('deleted');
  await run(deleted, 1, 'true');
  expect((await call('DELETE', `/${deleted}`)).body).toMatchObject({ end: 'cancelled' });
  const renewed = await open('kept');
  await run(renewed, 1, 'true');
  for (const [id, row] of [
    [lapsing, 'lease'],
    [deleted, 'cancelled'],
  ] as const) {
    await expect
      .poll(async () => (await call('GET', `/${id}`)).body.result, { timeout: 60_000, interval: 250 })
      .toMatchObject({ outcome: 'cancelled', judged: false, reward: null, reward_row: row });
  }
  const session_ids = [lapsing, deleted, renewed, 'sunknown'];
  expect((await call('POST', '/heartbeat', { session_ids })).body).toEqual({ alive: [renewed] });

  // An error names the cause and the field.
  const other = { ...instance, patch: '' };
  for (const [path, body, error] of [
    ['', { request_id: 'none' }, { field: 'instance' }],
    ['', { request_id: 'gold', instance: other }, { code: 'session_differs', field: 'request_id' }],
    ['', { request_id: 'x', instance, agent: { steps: 1 } }, { field: 'agent.steps' }],
    [`/${gold}/commands`, { seq: 'one', command: 'ls' }, { field: 'seq' }],
  ] as const)
    expect((await call('POST', path, body)).body).toMatchObject({ error });
  expect((await call('POST', '/sunknown/commands', { seq: 1, command: 'ls' })).status).toBe(404);

  // The worker dies during a command. Another worker cannot restore the state of the sandbox.
  const running = run(renewed, 2, 'sleep 600');
  await expect.poll(async () => (await call('GET', `/${renewed}`)).body.said).toBe(2);
  one.kill('SIGKILL');
  await one.exit;
  const two = await scene.worker`--worker-id ${names[1]}`;
  expect(await running).toMatchObject({ state: 'ended' });
  expect(await submit(renewed)).toMatchObject({
    result: { judged: false, outcome: 'failed', reward: null, failure: { class: 'session_lost' } },
  });

  expect(await two.stop(), two.stderr()).toBe(0);
  expect(await gateway.stop()).toBe(0);
  await scene.expectNothingLeft();
});
