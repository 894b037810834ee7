/** The probe before a training run, against the scripted policy server. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PolicyConfig } from '@swefarm/shared';
import { type ScriptedPolicyOptions, startScriptedPolicy } from '@swefarm/testkit';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { probeEndpoints } from '../src/probe/endpoints.ts';

vi.setConfig({ testTimeout: 180_000 });

const THINKING = [
  { think: 'A list, so ls.', thought: 'This one.', command: 'ls -a' },
  { command: 'cat README.md' },
  { text: 'That is all.' },
];

async function probe(
  config: object,
  options: Partial<ScriptedPolicyOptions> = {},
  action: 'fenced' | 'tool' = 'fenced',
) {
  const server = await startScriptedPolicy({
    script: { conversations: [{ variants: [THINKING] }] },
    ...options,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const [found] = await probeAll([server.url], config, action);
  return found ?? [];
}

async function probeAll(urls: string[], config: object, action: 'fenced' | 'tool'): Promise<string[][]> {
  const policy = PolicyConfig.parse({ urls, model: 'm', ...config });
  const signal = new AbortController().signal;
  const tried = await probeEndpoints(urls, { config: policy, apiKey: null, signal, action });
  return tried.map(({ found }) =>
    found.map(
      ({ status, subject, detail, remedy }) =>
        `${status} ${subject}: ${detail}${remedy ? ` → ${remedy}` : ''}`,
    ),
  );
}

/** A proxy of a policy that refuses requests with tools, as vLLM does without a tool-call parser. */
async function withoutTools(url: string): Promise<string> {
  const front = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const refused = body !== '' && (JSON.parse(body) as { tools?: unknown[] }).tools !== undefined;
    const answer = refused
      ? null
      : await fetch(new URL(request.url ?? '', url), {
          method: request.method ?? 'GET',
          headers: { 'content-type': 'application/json' },
          ...(body === '' ? {} : { body }),
        });
    response.writeHead(answer?.status ?? 400, {
      'content-type': answer?.headers.get('content-type') ?? 'text/plain',
    });
    response.end(answer ? await answer.text() : '"auto" tool choice requires --enable-auto-tool-choice');
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void front.close());
  return `http://127.0.0.1:${(front.address() as AddressInfo).port}/v1`;
}

describe.each(['plain', 'strips-thinking'])('template %s', (template) => {
  test('token-in passes with a thought and tool calls', async () => {
    const [text, tools] = await probe({ token_mode: 'token-in' }, { template }, 'tool');
    expect([text, tools]).toEqual([
      expect.stringMatching(
        /^ok tokens \(text\): 3 turns in mode token-in are contiguous, \d+ tokens \(1 with/,
      ),
      expect.stringMatching(/^ok tokens \(tools\): .*\(1 with thinking, 2 tool calls\)/),
    ]);
  });
  test('echo passes if the server reuses the returned prefix', async () => {
    const found = await probe({ token_mode: 'echo' }, { template }, 'tool');
    expect(found.slice(0, 2).map((line) => line.slice(0, 2))).toEqual(['ok', 'ok']);
  });
});

test.each([
  [{ token_mode: 'token-in' }, 'warn'],
  [{ token_mode: 'token-in', sampling: { max_tokens: 400 } }, 'ok'],
  [{ token_mode: 'echo' }, 'ok'],
])('%j, without a known length limit: %s', async (config, status) => {
  const found = await probe(config, { template: 'plain' });
  expect(found.find((line) => line.includes(' context: '))).toMatch(
    new RegExp(`^${status} context: the limit on tokens`),
  );
});

test('text is refused under a template that strips thinking, with token, position and remedy', async () => {
  const found = await probe({ token_mode: 'text' }, { template: 'strips-thinking' });
  expect(found[0]).toMatch(
    /^fail tokens \(text\): turn 2: .* token \d+ of \d+ was \d+, is \d+ → use --token-mode token-in/,
  );
});
test('text is refused under such a template even if the model did not think', async () => {
  const script = { conversations: [{ variants: [[{ text: 'ls' }]] }] };
  expect((await probe({ token_mode: 'text' }, { template: 'strips-thinking', script }))[1]).toMatch(
    /^fail tokens \(thinking\): the chat template drops .* → use --token-mode token-in/,
  );
  expect((await probe({ token_mode: 'text' }, { template: 'plain', script }))[1]).toMatch(
    /^ok tokens \(thinking\)/,
  );
});
test.each<[string, object, RegExp]>([
  ['no ids at all', { faults: [{ kind: 'missing_token_ids' }] }, /no token ids .* → token-in needs/],
  [
    'log-probabilities too few',
    { faults: [{ kind: 'short_log_probs' }] },
    /turn 1: \d+ generated tokens but \d+/,
  ],
  ['no tokenizer', { tokens: false }, /tokenize: HTTP 400/],
  ['an error', { faults: [{ kind: 'server_error' }] }, /completions: HTTP 500.* → check the URL/],
])('token-in is refused with %s', async (_, options, message) => {
  const [first] = await probe({ token_mode: 'token-in' }, options);
  expect(first).toMatch(/^fail tokens \(text\): /);
  expect(first).toMatch(message);
});

describe('a run by tool calls', () => {
  const tools = async (turns: object[], config: object = {}, options: object = {}) => {
    const script = { conversations: [{ variants: [turns as typeof THINKING] }] };
    const all = await probe({ token_mode: 'token-in', ...config }, { script, ...options }, 'tool');
    return all.find((line) => line.includes('tokens (tools)'));
  };
  test('passes with one tool call in three answers', async () => {
    expect(await tools([{ text: 'I could.' }, { text: 'I will.' }, { command: 'ls' }])).toMatch(
      /^ok tokens \(tools\): .* 1 tool calls/,
    );
  });
  test('is refused with the start of the last answer when the model calls no tool', async () => {
    expect(await tools([{ text: 'I run ls.' }])).toMatch(
      /^fail .*: no tool call could be read in 8 answers: the last one begins: "I run ls." → name .* --tool-parser \(now auto\), or use --action fenced$/,
    );
    expect(await tools([{ text: 'I run ls.' }], { token_mode: 'echo' })).toMatch(
      /→ serve the model with its own tool-call parser/,
    );
  });
  test('is refused with the marker and the fault of an unreadable call', async () => {
    const text = '<|tool_call_begin|>0<|tool_call_argument_begin|>{}<|tool_call_end|>';
    expect(await tools([{ text }])).toMatch(
      /no tool call .*: one begins a call with <\|tool_call_begin\|>, and its id names no function/,
    );
    expect(await tools([{ command: 'ls' }], { tool_parser: 'glm' })).toMatch(
      /one begins a call with <tool_call>, and its form is not the one that is read here .*\(now glm\)/,
    );
  });
  const spoken = async (...turns: object[]): Promise<string> => {
    const script = { conversations: [{ variants: [turns as typeof THINKING] }] };
    const server = await startScriptedPolicy({ script });
    onTestFinished(() => server[Symbol.asyncDispose]());
    return server.url;
  };
  test('passes a model that calls a tool in its fifth answer, and then stops asking', async () => {
    const words = [{ text: 'I could.' }, { text: 'I may.' }, { text: 'I will.' }, { text: 'Soon.' }];
    expect(await tools([...words, { command: 'ls' }])).toMatch(
      /^ok tokens \(tools\): 5 turns .* 1 tool calls/,
    );
  });
  test('passes with a warning when the model calls at another endpoint of the run', async () => {
    const urls = [await spoken({ command: 'ls' }), await spoken({ text: 'I run ls.' })];
    const all = await probeAll(urls, { token_mode: 'token-in' }, 'tool');
    expect(all.map((found) => found.find((line) => line.includes('(tools)')))).toEqual([
      expect.stringMatching(/^ok /),
      expect.stringMatching(/^warn .*: no tool call could be read in 8 answers/),
    ]);
  });
  test('is refused for an unreadable call even if the model calls at another endpoint', async () => {
    const urls = [await spoken({ command: 'ls' }), await spoken({ text: '<|tool_call>call:bash{}' })];
    const [, found = []] = await probeAll(urls, { token_mode: 'token-in' }, 'tool');
    expect(found[1]).toMatch(/^fail .*: one begins a call with <\|tool_call>/);
  });
  test('gets a warning, not a failure, for calls that the token limit cut off', async () => {
    const half = { command: 'ls', finish_reason: 'length' };
    expect(await tools([half])).toMatch(/^warn .* cut off at its limit of tokens → raise --max-tokens/);
    expect(await tools([half, { text: 'I run ls.' }])).toMatch(/^fail .*: the last one begins: "I run ls\."/);
  });
  test('with fenced commands passes at an endpoint that refuses tools', async () => {
    const url = await withoutTools(await spoken({ text: 'I run ls.' }));
    for (const token_mode of ['token-in', 'text']) {
      const [found = []] = await probeAll([url], { token_mode }, 'fenced');
      expect(found.map((line) => line.slice(0, 5))).not.toContain('fail ');
      expect(found.join('\n')).not.toContain('(tools)');
      const [called = []] = await probeAll([url], { token_mode }, 'tool');
      expect(called[1]).toMatch(/^fail tokens \(tools\): .*--enable-auto-tool-choice/);
    }
  });
});
