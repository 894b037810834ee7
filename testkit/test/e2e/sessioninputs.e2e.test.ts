/** Tests the inputs of sessions that loops outside of the farm need: raw output, files, folder, variables, the patch so far, the clock. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { EXAMPLE_ID } from './scripts.ts';
import { startSessions } from './sessiondriver.ts';

const MEBIBYTE = 1024 ** 2;

test('a driver works in the sandbox by files, raw commands and the patch so far', async () => {
  await using stack = new AsyncDisposableStack();
  const { scene, gateway, call, open: openSession, submit } = await startSessions(stack, 2);
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  const [instance] = built.rows;
  if (!instance) throw new Error(`${EXAMPLE_ID} was not built`);
  const worker = await scene.worker`--worker-id ${`inputs${process.pid}`}`;
  const all = { inputs: 'all', clock: 'commands', agent: { time_limit: 20, step_limit: 100 } };
  const id = await openSession('all', instance, all);
  let seq = 0;
  const give = async (path: string, body: object) => {
    const given = { ...body, seq: seq + 1, wait_s: 60 };
    const reply = await call('POST', `/${id}/${path}`, given);
    if (reply.status !== 200) return reply.body;
    seq++;
    expect(await call('POST', `/${id}/${path}`, given), 'a repeated input').toEqual(reply);
    return reply.body;
  };
  const run = (command: string, more: object = {}) => give('commands', { command, raw_bytes: 1000, ...more });
  const data = (text: string) => ({ content: { data: text, encoding: 'utf-8', head_bytes: null } });

  // Folder, variables and raw output.
  expect(await run('pwd; echo "$A" >&2', { cwd: '/tmp', env: { A: "it's; $B" } })).toMatchObject({
    ...{ exit_code: 0, ...data("/tmp\nit's; $B\n") },
  });
  expect(await run('echo "[$A]"; pwd', { cwd: '.' })).toMatchObject(data('[]\n/testbed\n'));
  const nowhere = await run('echo ran', { cwd: '/nowhere' });
  expect(nowhere).toMatchObject({ exit_code: 1 });
  expect(JSON.stringify(nowhere)).toMatch(/nowhere: No such file/);
  expect(JSON.stringify(nowhere)).not.toContain('ran');
  expect(await run("printf '\\377\\000\\n'")).toMatchObject({
    content: { data: Buffer.from([255, 0, 10]).toString('base64'), encoding: 'base64', bytes: 3 },
  });
  const flood = await run('head -c 100000000 /dev/zero | tr "\\0" x; echo; echo end');
  expect(flood).toMatchObject({ exit_code: 0, content: { bytes: 100_000_005, head_bytes: 500 } });
  expect((flood.content as unknown as { data: string }).data).toMatch(/^x{995}\nend\n$/);
  expect(await run('sleep 30', { timeout_s: 0.2 })).toMatchObject({ note: 'timed_out', exit_code: null });
  // The driver decides whether an output that looks like a submission submits.
  expect(await run('echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT')).toMatchObject({ state: 'answered' });

  // Files.
  const bytes = Buffer.alloc(3 * MEBIBYTE, Buffer.from([1, 2, 250, 251]));
  const binary = { path: '/opt/new/tool', data: bytes.toString('base64'), encoding: 'base64', mode: 0o755 };
  expect(await give('files/write', binary)).toMatchObject({ state: 'answered', exit_code: null });
  expect(await run('stat -c "%a %s" /opt/new/tool')).toMatchObject(data(`755 ${bytes.length}\n`));
  expect(await give('files/read', { path: '/opt/new/tool' })).toMatchObject({
    content: { data: bytes.toString('base64'), encoding: 'base64' },
  });
  await run(
    'ln -s /etc/passwd /tmp/link; mkfifo /tmp/pipe; echo mine > /tmp/target; ln -s /tmp/target /tmp/out',
  );
  for (const path of ['/tmp/link', '/tmp/pipe', '/tmp', '/nowhere', '/dev/zero'])
    expect(await give('files/read', { path }), path).toMatchObject({ error: { code: 'not_a_file' } });
  expect(await give('files/read', { path: '/opt/new/tool', max_bytes: 10 })).toMatchObject({
    error: { code: 'too_large' },
  });
  await give('files/write', { path: '/tmp/out', data: 'other' });
  expect(await run('cat /tmp/target; test ! -L /tmp/out && cat /tmp/out')).toMatchObject(data('mine\nother'));
  for (const path of ['/tmp', '/proc/none/x'])
    expect(await give('files/write', { path, data: '' }), path).toMatchObject({ error: { code: 'failed' } });
  // The sandbox has accounts of its own.
  const own = await give('files/write', { path: '/etc/shadow', data: 'written\n' });
  expect(own).toMatchObject({ state: 'answered' });
  expect(await give('files/read', { path: '/etc/shadow' })).toMatchObject(data('written\n'));

  // Refusals of requests, which use no number.
  const before = seq;
  for (const [path, body, error] of [
    ['files/read', { path: '/tmp/../etc/passwd' }, { field: 'path' }],
    ['files/read', { path: 'calc.py' }, { field: 'path' }],
    ['files/read', { path: '/x', max_bytes: 9 * MEBIBYTE }, { field: 'max_bytes' }],
    ['files/write', { path: '/x', data: 'é', encoding: 'base64' }, { field: 'data' }],
    ['files/write', { path: '/x', data: 'é'.repeat(5 * MEBIBYTE) }, { code: 'too_large', field: 'data' }],
    ['commands', { command: 'ls', env: { 'A B': '' } }, { code: 'bad_request' }],
    ['commands', { command: 'ls', raw_bytes: 5 * MEBIBYTE }, { field: 'raw_bytes' }],
  ] as const)
    expect(await give(path, body), JSON.stringify(body).slice(0, 80)).toMatchObject({ error });
  expect(seq).toBe(before);

  // The time limit counts commands only, and the patch can be read before it is submitted.
  const patch = Buffer.from(instance.patch);
  await give('files/write', { path: '/tmp/gold', data: patch.toString(), mode: 0o600 });
  expect(await give('diff', {})).toMatchObject({ content: { data: '', bytes: 0 } });
  expect(await run('git apply /tmp/gold && echo new > new.txt')).toMatchObject({ exit_code: 0 });
  const diff = JSON.stringify(await give('diff', {}));
  expect(diff).toContain('+++ b/new.txt');
  expect(await run('rm new.txt')).toMatchObject({ exit_code: 0 });
  expect(await submit(id)).toMatchObject({
    result: { judged: true, reward: 1, resolved: true, exit_status: 'submitted', turns: seq },
  });
  expect(await worker.stop(), worker.stderr()).toBe(0);
  expect(await gateway.stop()).toBe(0);
  await scene.expectNothingLeft();
});

test('the clock stops while the driver pauses it, and a plain session refuses files', async () => {
  await using stack = new AsyncDisposableStack();
  const { scene, gateway, call, open: openSession, run, submit } = await startSessions(stack, 4);
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: scene.folder });
  const [instance] = built.rows;
  const worker = await scene.worker`--worker-id ${`clock${process.pid}`}`;
  const agent = { time_limit: 4 };
  const open = (id: string, more: object) => openSession(id, instance, { agent, ...more });

  const [running, paused, apart] = await Promise.all([
    open('running', { inputs: 'all' }),
    open('paused', { inputs: 'all' }),
    open('apart', { clock: 'commands' }),
  ]);
  const clock = (id: string, paused: boolean) => call('POST', `/${id}/clock`, { paused });
  await Promise.all([running, paused, apart].map((id) => run(id, 1, 'true')));
  expect((await clock(paused, true)).body).toMatchObject({ paused: true });
  expect(await clock(apart, true)).toMatchObject({ status: 409, body: { error: { code: 'inputs_differ' } } });
  await sleep(6_000);
  expect(await run(running, 2, 'true')).toMatchObject({ state: 'ended', end: 'time_limit' });
  for (const id of [paused, apart])
    expect(await run(id, 2, 'true'), id).toMatchObject({ state: 'answered', exit_code: 0 });
  // An input ends the pause, so the time limit ends this session.
  await sleep(5_000);
  expect(await run(paused, 3, 'true')).toMatchObject({ state: 'ended', end: 'time_limit' });
  expect(await run(apart, 3, 'sleep 9')).toMatchObject({ state: 'answered', note: 'timed_out' });
  expect(await run(apart, 4, 'true')).toMatchObject({ state: 'ended', end: 'time_limit' });
  expect(await submit(apart)).toMatchObject({ result: { judged: true, exit_status: 'time_limit' } });

  const plain = await open('plain', {});
  const refused = { status: 409, body: { error: { code: 'inputs_differ', field: 'inputs' } } };
  expect(await call('POST', `/${plain}/diff`, { seq: 1 })).toMatchObject(refused);
  expect(await call('POST', `/${plain}/commands`, { seq: 1, command: 'ls', cwd: '/' })).toMatchObject(
    refused,
  );
  const differs = { request_id: 'plain', instance, agent, inputs: 'all' };
  expect(await call('POST', '', differs)).toMatchObject({ body: { error: { code: 'session_differs' } } });
  await call('DELETE', `/${plain}`);
  expect(await worker.stop(), worker.stderr()).toBe(0);
  expect(await gateway.stop()).toBe(0);
  await scene.expectNothingLeft();
});
