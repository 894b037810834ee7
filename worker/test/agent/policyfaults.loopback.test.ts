/** The policy client against a failing server: the table of faults. */
import type { Message } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { answered, ask, failureOf, KEY, keyFor, open, warnings } from './askpolicy.ts';
import { completion, type Handler, sendError, sendJson, sendText, startEndpoint } from './endpoint.ts';
import { never, START } from './scripted.ts';

const LENGTH = "This model's maximum context length is 8192";

describe('the prompt no longer fits', () => {
  const long: Message[] = [...START, { role: 'assistant', content: 'x' }, { role: 'user', content: 'y' }];
  test.each<[string, Handler]>([
    ['vLLM', sendError(400, `${LENGTH} tokens. However, you requested 9000 tokens`)],
    [
      'vLLM, newer',
      sendError(400, 'The decoder prompt (length 9000) is longer than the maximum model length of 8192.'),
    ],
    [
      'vLLM, no room for the answer',
      sendError(400, `'max_tokens' or 'max_completion_tokens' is too large: 5000. ${LENGTH} tokens`),
    ],
    [
      'vLLM, older form',
      sendJson({ object: 'error', message: 'maximum context length is 8192', code: 400 }, 400),
    ],
    [
      'SGLang',
      sendError(400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
    ],
    ['OpenAI', sendError(400, 'Your input is large.', { code: 'context_length_exceeded' })],
    ['plain text', sendText('prompt is too long', 413)],
  ])('%s', async (_, handler) => {
    await using endpoint = await startEndpoint(handler);
    const reply = await ask(endpoint, {}, long);
    expect(reply).toMatchObject({ context_overflow: true });
    expect(endpoint.requests).toHaveLength(1);
  });
  test('an answer larger than the context is requested once more with the room that is left', async () => {
    const handler = sendError(400, `'max_tokens' is too large: 99999. ${LENGTH}`);
    await using endpoint = await startEndpoint(handler, sendJson(completion('ok')));
    const reply = await answered(ask(endpoint, { sampling: { max_tokens: 99_999 } }));
    expect(endpoint.requests.map(({ body }) => body.max_tokens)).toEqual([99_999, undefined]);
    expect(reply.asked).toEqual({ max_tokens: null });
  });
});

test('a sampling key that the endpoint refuses is named with a remedy', async () => {
  await using endpoint = await startEndpoint(sendError(400, 'Unrecognized request argument supplied: top_k'));
  const failure = await failureOf(ask(endpoint, { require_tokens: true }));
  expect(failure).toMatchObject({ failureClass: 'policy_bad_request' });
  expect(failure.message).toMatch(/does not take "top_k": training \(--require-tokens\) always sends it/);
  expect(endpoint.requests).toHaveLength(1);
});

describe('faults without a retry', () => {
  test.each([
    [401, 'policy_unauthorized'],
    [403, 'policy_unauthorized'],
    [404, 'policy_model_unknown'],
    [400, 'policy_bad_request'],
    [422, 'policy_bad_request'],
    [405, 'policy_bad_request'],
  ])('HTTP %i is %s after one request', async (status, failureClass) => {
    await using endpoint = await startEndpoint(sendError(status, `no: bad key ${KEY}`));
    const failure = await failureOf(open(endpoint.url, {}, keyFor(endpoint.url)).complete(START, [], never));
    expect(failure).toMatchObject({ failureClass });
    expect(failure.message).toContain(endpoint.url);
    expect(failure.message).toContain(`HTTP ${status}`);
    expect(failure.message).not.toContain(KEY);
    expect(failure.message.length).toBeLessThanOrEqual(400);
    expect(endpoint.requests).toHaveLength(1);
  });
  test.each(['tokenize', 'detokenize'])('a missing /%s is named with a remedy', async (route) => {
    await using endpoint = await startEndpoint((request, response) => {
      const answers = request.path.endsWith('/tokenize') && route === 'detokenize';
      response.writeHead(answers ? 200 : 404, { 'content-type': 'application/json' });
      response.end(answers ? '{"tokens":[1,2,3]}' : '{"error":{"message":"Not Found"}}');
    });
    const failure = await failureOf(ask(endpoint, { token_mode: 'token-in' }));
    expect(failure).toMatchObject({ failureClass: 'policy_model_unknown' });
    expect(failure.message).toMatch(
      new RegExp(`does not serve /${route} \\(HTTP 404\\): name a folder .* by --tokenizer`),
    );
  });
  test('silence is policy_silent and is not retried', async () => {
    await using endpoint = await startEndpoint(() => undefined);
    const failure = await failureOf(ask(endpoint, { request_timeout: 0.2 }));
    expect(failure).toMatchObject({ failureClass: 'policy_silent' });
    expect(endpoint.requests).toHaveLength(1);
    // Resolves only when the client closes the connection.
    expect(await endpoint.requests[0]?.closed).toBeDefined();
  });
  test('a body that never ends is policy_silent', async () => {
    await using endpoint = await startEndpoint((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"choices": [');
    });
    const failure = await failureOf(ask(endpoint, { request_timeout: 0.2 }));
    expect(failure).toMatchObject({ failureClass: 'policy_silent' });
    expect(endpoint.requests).toHaveLength(1);
  });
});

describe('faults with retries', () => {
  const reset: Handler = (_, response) => response.destroy();
  const cut: Handler = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
    response.write('{"choices": [');
    setTimeout(() => response.destroy(), 20);
  };
  const ok = sendJson(completion('ok'));

  test.each<[string, Handler]>([
    ['a reset before the head', reset],
    ['a body cut in the middle', cut],
    ['HTTP 500', sendError(500, 'x')],
    ['HTTP 502', sendText('<html>bad gateway</html>', 502)],
    ['HTTP 503', sendError(503, 'x')],
    ['HTTP 429', sendError(429, 'x')],
    ['something that is not JSON', sendText('<html>')],
    ['an answer without choices', sendJson({ choices: [] })],
    ['an answer of wrong types', sendJson({ choices: [{ message: { content: 5 } }] })],
    [
      'an engine that broke off',
      sendJson(completion('x', { choices: [{ message: { content: 'x' }, finish_reason: 'abort' }] })),
    ],
  ])('%s once: retried and logged', async (_, handler) => {
    await using endpoint = await startEndpoint(handler, ok);
    warnings.length = 0;
    const reply = await answered(ask(endpoint));
    expect(reply.message.content).toBe('ok');
    expect(endpoint.requests).toHaveLength(2);
    expect(warnings).toHaveLength(1);
  });

  test.each<[string, Handler, string, number]>([
    ['HTTP 500', sendError(500, 'x'), 'policy_server_error', 3],
    ['HTTP 504', sendError(504, 'x'), 'policy_server_error', 3],
    ['garbage', sendText('<html>'), 'policy_garbage', 3],
    ['bodies cut', cut, 'policy_unreachable', 3],
  ])('%s always: a few requests, then a failure', async (_, handler, failureClass, count) => {
    await using endpoint = await startEndpoint(handler);
    expect(await failureOf(ask(endpoint))).toMatchObject({ failureClass });
    expect(endpoint.requests).toHaveLength(count);
  });

  test('a refused connection is retried within the patience', async () => {
    const endpoint = await startEndpoint(ok);
    await endpoint[Symbol.asyncDispose]();
    const started = performance.now();
    const failure = await failureOf(ask(endpoint, { patience: 0.6 }));
    expect(failure).toMatchObject({ failureClass: 'policy_unreachable' });
    expect(failure.message).toMatch(/ECONNREFUSED/);
    expect(performance.now() - started).toBeGreaterThan(550);
    expect(performance.now() - started).toBeLessThan(20_000);
  });
  test('HTTP 503 is retried until patience is over', async () => {
    await using endpoint = await startEndpoint(sendError(503, 'busy'));
    const failure = await failureOf(ask(endpoint, { patience: 0.8 }));
    expect(failure).toMatchObject({ failureClass: 'policy_server_error' });
    expect(endpoint.requests.length).toBeGreaterThan(1);
  });
  test('without patience there is no second request', async () => {
    await using endpoint = await startEndpoint(sendError(503, 'busy'));
    await failureOf(ask(endpoint, { patience: 0 }));
    expect(endpoint.requests).toHaveLength(1);
  });
  test('Retry-After is respected', async () => {
    await using endpoint = await startEndpoint(sendError(503, 'x', {}, { 'retry-after': '1' }), ok);
    await answered(ask(endpoint));
    const [first, second] = endpoint.requests;
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(990);
  });
  test('a Retry-After beyond patience is a failure at once', async () => {
    await using endpoint = await startEndpoint(sendError(429, 'x', {}, { 'retry-after': '100' }));
    const started = performance.now();
    expect(await failureOf(ask(endpoint))).toMatchObject({ failureClass: 'policy_server_error' });
    expect(performance.now() - started).toBeLessThan(50_000);
  });
});
