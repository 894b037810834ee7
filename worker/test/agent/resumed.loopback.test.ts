/** Tests answers that begin with a part from an earlier attempt. */
import { createHash } from 'node:crypto';
import { PolicyConfig } from '@swefarm/shared';
import { expect, onTestFinished, test } from 'vitest';
import type { BegunReply, LineRequest } from '../../src/agent/agent.ts';
import { type Handler, sendText } from './endpoint.ts';
import { never, policyAt, START } from './scripted.ts';
import { events, streamed, tokenEndpoint } from './streaming.ts';

const PROMPT = createHash('sha256')
  .update(Int32Array.of(1, 2, 3))
  .digest('hex');
const BEGUN = {
  ...{ prompt: PROMPT, text: 't8 t9 ', ids: Int32Array.of(8, 9), log_probs: Float32Array.of(-1, -1.125) },
  ...{ versions: [{ start: 'v', end: 'v', tokens: 2 }], seconds: 100 },
};

async function resume(handlers: Handler[], more: object = {}) {
  const { url, bodies } = await tokenEndpoint(...handlers);
  const config = { urls: [url], model: 'm', token_mode: 'token-in', version: 'v', patience: 0, ...more };
  const policy = policyAt(PolicyConfig.parse(config));
  onTestFinished(() => policy[Symbol.dispose]());
  const asked = policy.openLine()({ messages: START, tools: [], signal: never, begun: BEGUN });
  return { asked, bodies, policy };
}

test('only the tokens of this attempt count towards its pace', async () => {
  const { asked, bodies, policy } = await resume([streamed(events([10, 11], 'stop'))]);
  expect(await asked).toMatchObject({ generation_token_ids: Int32Array.of(8, 9, 10, 11) });
  expect(bodies()[0]?.prompt).toEqual([1, 2, 3, 8, 9]);
  expect(policy.throughput()?.tokens).toBe(2);
});

test.each([
  ['before its first token', 0, sendText('<html>', 500)],
  ['after a token', 1, streamed(events([10], null), 'cut')],
])('an answer that fails %s gives no tokens of the part to the pace', async (_, tokens, bad) => {
  const { asked, policy } = await resume([bad, sendText('<html>', 500)]);
  await expect(asked).rejects.toMatchObject({ name: 'RolloutFailure' });
  expect(policy.throughput()?.tokens).toBe(tokens);
});

test.each([
  [{}, 'is continued', [8, 9, 10]],
  [{ sampling: { presence_penalty: 0.5 } }, 'is sampled anew with a penalty', [10]],
  [{ sampling: { presence_penalty: 0, frequency_penalty: 0 } }, 'is continued without one', [8, 9, 10]],
  [{ extra_body: { guided_regex: 'a*' } }, 'is sampled anew in a grammar', [10]],
  [{ extra_body: { response_format: { type: 'json_object' } } }, 'is sampled anew as JSON', [10]],
] as const)('with %j a part %s', async (config, _, ids) => {
  const { asked } = await resume([streamed(events([10], 'stop'))], config);
  expect(await asked).toMatchObject({ generation_token_ids: Int32Array.from(ids) });
});

test('the part of a damaged stream is empty, not unknown', async () => {
  const bad = [...events([8], null), 'data: {"error":{"message":"dead"}}\n\n'];
  const asking = Promise.withResolvers<void>();
  const silent: Handler = () => asking.resolve();
  const { url } = await tokenEndpoint(streamed(bad), silent);
  const config = { urls: [url], model: 'm', token_mode: 'token-in', version: 'v', patience: 60 };
  using policy = policyAt(PolicyConfig.parse(config));
  const over = new AbortController();
  let read: () => BegunReply | null = () => null;
  const onBegin: LineRequest['onBegin'] = (given) => {
    read = given;
  };
  const asked = policy.openLine()({ messages: START, tools: [], signal: over.signal, onBegin });
  await asking.promise;
  expect(read()).toMatchObject({ text: '', ids: new Int32Array(0), versions: [] });
  over.abort();
  await expect(asked).rejects.toThrow();
});
