import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { bearer, testGateway } from '@swefarm/gateway/test/gateway.ts';
import { row } from '@swefarm/gateway/test/gym.ts';
import { redisUrl, testFolder } from '@swefarm/runs/test/farm.ts';
import { until, words } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { exited, run, start } from './cli.ts';
import { farmOptions } from './scene.ts';

test('a probe needs no token, all else does; refusals are JSON and name the field', async () => {
  const { url } = await testGateway();
  expect(await (await fetch(`${url}/healthz`)).json()).toMatchObject({ status: 'ok' });
  for (const authorization of ['', 'Bearer no', 'Basic eDpubw==', 'Bearer']) {
    const reply = await fetch(`${url}/nothing`, { headers: { authorization } });
    expect(reply.status).toBe(401);
    expect(await reply.json()).toMatchObject({ error: { code: 'unauthorized', field: 'authorization' } });
  }
  expect((await fetch(`${url}/nothing`, { headers: bearer() })).status).toBe(404);
  const strange = await testGateway({ gateway_anonymous: true });
  const reply = await fetch(`${strange.url}/nothing`);
  expect(reply.status).toBe(404);
  expect(await reply.json()).toMatchObject({ error: { code: 'not_found' } });
});

test.each(['a b/:@[', 'a:b:c', ''])('a request with the Host header "%s" gets 400', async (host) => {
  const { gateway } = await testGateway();
  const socket = connect(gateway.port, '127.0.0.1');
  socket.end(
    `GET /global_config_dict_yaml HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${bearer().authorization}\r\nConnection: close\r\n\r\n`,
  );
  const reply = await text(socket);
  expect(reply).toMatch(/^HTTP\/1.1 400 /);
  expect(JSON.parse(reply.slice(reply.indexOf('{')))).toMatchObject({
    error: { code: 'bad_request', field: 'host' },
  });
});

test('a caller may name a prompt set of the workers; only the operator names a folder', async () => {
  const own = await testGateway({}, { agent: { prompts: '/shared/prompts' } });
  const submitTo = async (url: string, prompts: string) => {
    const body = JSON.stringify({ instances: [row()], run: { agent: { type: 'noop', prompts } } });
    const headers = { ...bearer(), 'content-type': 'application/json' };
    const reply = await fetch(`${url}/v1/runs`, { method: 'POST', headers, body });
    return { status: reply.status, body: await reply.json() };
  };
  for (const folder of ['/root/', './x', '../secrets', 'C:\\x']) {
    expect(await submitTo(own.url, folder)).toMatchObject({
      status: 422,
      body: { error: { code: 'bad_settings', field: 'run.agent.prompts' } },
    });
  }
  expect(await submitTo(own.url, 'default')).toMatchObject({ status: 201 });
  expect(await submitTo(own.url, '/shared/prompts')).toMatchObject({ status: 201 });
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ['min_group', { min_group: 2 }, /serve: --min-group \(min_group\) cannot be set here/],
  ['oversample', { oversample: 1 }, /serve: --oversample/],
  ['refills', { refills: 1 }, /serve: --refills/],
  ['a deadline', { deadline_at: Date.now() + 1_800_000 }, /serve: --deadline \(deadline_at\)/],
  ['a group size', { group_size: 4 }, /serve: --group-size/],
  ['a life shorter than a hold', { ttl: 60 }, /caller default: --ttl \(ttl\): 60 s is shorter than 21600 s/],
])('%s that would end the calls of a day is refused by name at the start', async (_, settings, message) => {
  await expect(testGateway({}, settings)).rejects.toThrow(message);
});

test('options without effect are not refused, nor options that apply to single rollouts', async () => {
  const harmless = { min_group: null, oversample: 0, refills: 0, deadline_at: null, max_staleness: 1 };
  await testGateway({}, { ...harmless, infra_pause_share: 0.2, ttl: 86_400 });
});

test('an entry of the callers file is held to the same', async () => {
  const path = join(await testFolder(), 'callers.yaml');
  await writeFile(path, 'callers:\n  - {name: nemo, anonymous: true, run: {oversample: 1}}\n');
  await expect(testGateway({ gateway_callers: path })).rejects.toThrow(/caller nemo: run: --oversample/);
  const refused = await run(words`serve --port 0 --deadline 30m ${farmOptions()}`);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toMatch(/serve: --deadline \(deadline_at\) cannot be set here/);
});

test('`swefarm serve` prints its address, keeps a made token to itself and ends when told', async () => {
  const state = await testFolder();
  const serve = start(['serve', '--port', '0', '--redis-url', redisUrl(), '--state-dir', state]);
  onTestFinished(() => void serve.child.kill('SIGKILL'));
  await until(() => serve.stdout().includes('\n'));
  const { url, port } = JSON.parse(serve.stdout()) as { url: string; port: number };
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  const taken = await run(['serve', '--port', String(port), '--redis-url', redisUrl(), '--state-dir', state]);
  expect(taken).toMatchObject(exited(2, 'is taken'));
  serve.child.kill('SIGTERM');
  expect((await serve.ended).code).toBe(0);
});
