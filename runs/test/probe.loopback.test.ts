/** The doctor's probe of a policy endpoint, against scripted faults. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePort, originsOf, Secret } from '@swefarm/shared';
import { startScriptedPolicy } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { probePolicy, probeReachable } from '../src/probe/probe.ts';

async function endpoint(turn: object, options: object = {}): Promise<string> {
  const server = await startScriptedPolicy({
    script: { conversations: [{ variants: [[turn]] }] },
    ...options,
  } as Parameters<typeof startScriptedPolicy>[0]);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server.url;
}

const probe = async (url: string, model: string | null = null, apiKey: Secret | null = null) =>
  (
    await probePolicy(url, {
      model,
      apiKey: apiKey && { secret: apiKey, origins: originsOf([url]) },
      signal: new AbortController().signal,
    })
  ).map(({ status, subject, detail }) => `${status} ${subject}: ${detail}`);

test('a healthy endpoint offers a model, an answer and token ids', async () => {
  const found = await probe(await endpoint({ text: 'yes' }));
  expect(found[0]).toMatch(/^ok endpoint: answers, serves /);
  expect(found[1]).toMatch(/^ok completion: one of /);
  expect(found[2]).toBe('ok tokens: token ids and log-probabilities are offered');
});

/** A server with only text completions, such as a shim over a sampler. `routes`: the routes that it serves. */
async function completionsOnly(routes: readonly string[], choice: object = {}): Promise<string> {
  const all = { token_ids: [5], logprobs: { token_logprobs: [-0.5] } };
  const answers: Record<string, object> = {
    '/v1/models': { object: 'list', data: [{ id: 'm' }] },
    '/v1/completions': { choices: [{ text: 'yes', finish_reason: 'stop', ...all, ...choice }] },
    '/tokenize': { tokens: [1, 2] },
  };
  const server = createServer((request, response) => {
    const { url = '' } = request;
    response.writeHead(routes.includes(url) ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(routes.includes(url) ? answers[url] : { error: { message: 'no route' } }));
  });
  onTestFinished(() => void server.close().closeAllConnections());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

test('token mode tries the routes that it uses, and no others', async () => {
  const routes = ['/v1/models', '/v1/completions', '/tokenize'];
  const options = { model: 'm', apiKey: null, signal: new AbortController().signal };
  const found = async (url: string, token_mode: 'token-in' | 'text', tokenizer: string | null = null) =>
    (await probePolicy(url, { ...options, modes: { token_mode, tokenizer } })).map(
      ({ status, subject, remedy }) => `${status} ${subject}${status === 'fail' ? ` ${remedy}` : ''}`,
    );
  const whole = await completionsOnly(routes);
  expect(await found(whole, 'token-in')).toEqual([
    'ok endpoint',
    'ok completion',
    'ok tokens',
    'ok tokenize',
  ]);
  expect(await found(whole, 'text')).toMatchObject([
    'ok endpoint',
    expect.stringMatching(/^fail completion/),
  ]);
  const bare = await completionsOnly(routes.slice(0, 2));
  expect((await found(bare, 'token-in')).at(-1)).toMatch(/^fail tokenize .*--tokenizer/);
  expect((await found(bare, 'token-in', '/models/m')).at(-1)).toBe('ok tokens');
  const textual = await completionsOnly(routes, { token_ids: null });
  expect((await found(textual, 'token-in'))[2]).toMatch(/^fail tokens token-in needs both/);
  const modes = { token_mode: 'token-in', tokenizer: null } as const;
  expect(await probeReachable(whole, { ...options, model: 'alias', modes })).toMatchObject({ status: 'ok' });
});

test('an endpoint without token ids gets a warning', async () => {
  const found = await probe(await endpoint({ text: 'yes' }, { tokens: false }));
  expect(found.at(-1)).toMatch(/^warn tokens: /);
});

test.each<[string, object, RegExp]>([
  ['an unknown model', { text: 'x', fault: { kind: 'model_unknown' } }, /^fail completion: HTTP 404/],
  ['a server error', { text: 'x', fault: { kind: 'server_error' } }, /^fail completion: HTTP 500/],
  ['garbage', { text: 'x', fault: { kind: 'garbage' } }, /^fail completion: the answer is n/],
  [
    'no choices',
    { text: 'x', fault: { kind: 'no_choices' } },
    /^fail completion: the answer is no chat completion/,
  ],
  ['a reset', { text: 'x', fault: { kind: 'reset' } }, /^fail completion: /],
])('an endpoint with %s fails', async (_name, turn, message) => {
  expect((await probe(await endpoint(turn))).at(-1)).toMatch(message);
});

test('only the right key passes, and no finding shows a key', async () => {
  const url = await endpoint({ text: 'yes' }, { apiKey: 'k' });
  expect((await probe(url)).at(-1)).toMatch(/HTTP 401/);
  expect((await probe(url, null, new Secret('wrong'))).join()).not.toContain('wrong');
  expect((await probe(url, null, new Secret('k'))).at(-1)).toMatch(/^ok tokens/);
});

test('a closed port and a URL that is no endpoint fail', async () => {
  expect(await probe(`http://127.0.0.1:${await freePort()}/v1`)).toEqual([
    expect.stringMatching(/^fail endpoint: .*ECONNREFUSED/),
  ]);
  const url = await endpoint({ text: 'yes' });
  expect((await probe(url.replace('/v1', '/nowhere'))).at(-1)).toMatch(/^fail endpoint: HTTP 404/);
});

const reach = async (url: string, model = 'scripted', apiKey: Secret | null = null) => {
  const key = apiKey && { secret: apiKey, origins: originsOf([url]) };
  const { signal } = new AbortController();
  const { status, detail, remedy } = await probeReachable(url, { model, apiKey: key, signal });
  return `${status}: ${detail}${remedy ? ` → ${remedy}` : ''}`;
};

test('before a run: an endpoint that serves the model passes', async () => {
  expect(await reach(await endpoint({ text: 'yes' }))).toBe('ok: serves scripted');
});

test('before a run: an unlisted model passes only if it answers', async () => {
  expect(await reach(await endpoint({ text: 'yes' }), 'alias')).toBe('ok: answers as alias');
  const unknown = await endpoint({ text: 'x', fault: { kind: 'model_unknown' } });
  expect(await reach(unknown, 'alias')).toMatch(/^fail: model alias: HTTP 404.* → use one of: scripted/);
});

test('before a run: a closed port, an unknown host, a wrong path and a missing key fail', async () => {
  const port = await freePort();
  expect(await reach(`http://127.0.0.1:${port}/v1`)).toMatch(/^fail: .*ECONNREFUSED.* → start the endpoint/);
  expect(await reach('http://nowhere.invalid/v1')).toMatch(/^fail: .*nowhere\.invalid.* → .*check host/);
  const url = await endpoint({ text: 'yes' }, { apiKey: 'k' });
  expect(await reach(url)).toMatch(/^fail: .*HTTP 401.* → pass --api-key-env/);
  expect(await reach(url, 'scripted', new Secret('k'))).toBe('ok: serves scripted');
  expect(await reach(url.replace(/v1$/, 'v2'), 'scripted', new Secret('k'))).toMatch(
    /^fail: .*HTTP 404.* → /,
  );
});

test('before a run: an endpoint that is overloaded or still starts is a warning', async () => {
  expect(await reach(await endpoint({ text: 'x', fault: { kind: 'server_error' } }), 'alias')).toMatch(
    /^warn: HTTP 500/,
  );
});
