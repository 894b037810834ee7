import { expect, onTestFinished, test } from 'vitest';
import { run, start, until } from '../cli.ts';
import { redisUrl, testFolder } from '../farm.ts';
import { bearer, testGateway } from './gateway.ts';

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

test('`swefarm serve` prints its address, keeps a made token to itself and ends when told', async () => {
  const state = await testFolder();
  const serve = start(['serve', '--port', '0', '--redis-url', redisUrl(), '--state-dir', state]);
  onTestFinished(() => void serve.child.kill('SIGKILL'));
  let said = '';
  serve.child.stdout?.on('data', (chunk) => {
    said += chunk;
  });
  await until(() => said.includes('\n'));
  const { url, port } = JSON.parse(said) as { url: string; port: number };
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  const taken = await run(['serve', '--port', String(port), '--redis-url', redisUrl(), '--state-dir', state]);
  expect(taken).toMatchObject({ code: 2, stderr: expect.stringContaining('is taken') });
  serve.child.kill('SIGTERM');
  expect((await serve.ended).code).toBe(0);
});
