/** The probe before a training run, against the scripted policy server: what it lets pass and what it refuses by name. */
import { PolicyConfig } from '@swefarm/shared';
import { type ScriptedPolicyOptions, startScriptedPolicy } from '@swefarm/testkit';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { probeTokens } from '../src/probe/tokenprobe.ts';

vi.setConfig({ testTimeout: 60_000 });

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
  const policy = PolicyConfig.parse({ urls: [server.url], model: 'm', ...config });
  const signal = new AbortController().signal;
  const found = await probeTokens(server.url, { config: policy, apiKey: null, signal, action });
  return found.map(
    ({ status, subject, detail, remedy }) => `${status} ${subject}: ${detail}${remedy ? ` → ${remedy}` : ''}`,
  );
}

describe.each(['plain', 'strips-thinking'])('template %s', (template) => {
  test('token-in passes, with a thought and tool calls', async () => {
    const [text, tools] = await probe({ token_mode: 'token-in' }, { template });
    expect([text, tools]).toEqual([
      expect.stringMatching(
        /^ok tokens \(text\): 3 turns in mode token-in are contiguous, \d+ tokens \(1 with/,
      ),
      expect.stringMatching(/^ok tokens \(tools\): .*\(1 with thinking, 2 tool calls\)/),
    ]);
  });
  test('echo passes where the server pins what it gets back', async () => {
    const found = await probe({ token_mode: 'echo' }, { template });
    expect(found.slice(0, 2).map((line) => line.slice(0, 2))).toEqual(['ok', 'ok']);
  });
});

test.each([
  [{ token_mode: 'token-in' }, 'warn'],
  [{ token_mode: 'token-in', sampling: { max_tokens: 400 } }, 'ok'],
  [{ token_mode: 'echo' }, 'ok'],
])('%j, where nobody tells how long a sequence may be: %s', async (config, status) => {
  const found = await probe(config, { template: 'plain' });
  expect(found.find((line) => line.includes(' context: '))).toMatch(
    new RegExp(`^${status} context: nobody tells`),
  );
});

test('text is refused under a template that strips thinking, with token, place and remedy', async () => {
  const found = await probe({ token_mode: 'text' }, { template: 'strips-thinking' });
  expect(found[0]).toMatch(
    /^fail tokens \(text\): turn 2: .* token \d+ of \d+ was \d+, is \d+ → use --token-mode token-in/,
  );
});
test('and also when the model happened not to think', async () => {
  const script = { conversations: [{ variants: [[{ text: 'ls' }]] }] };
  expect((await probe({ token_mode: 'text' }, { template: 'strips-thinking', script }))[2]).toMatch(
    /^fail tokens \(thinking\): the chat template drops .* → use --token-mode token-in/,
  );
  expect((await probe({ token_mode: 'text' }, { template: 'plain', script }))[2]).toMatch(
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
  test('passes with one call in three answers', async () => {
    expect(await tools([{ text: 'I could.' }, { text: 'I will.' }, { command: 'ls' }])).toMatch(
      /^ok tokens \(tools\): .* 1 tool calls/,
    );
  });
  test('is refused when the model calls nothing, by what it says', async () => {
    expect(await tools([{ text: 'I run ls.' }])).toMatch(
      /^fail .*: no tool call could be read in 3 answers: the last one begins: "I run ls." → name .* --tool-parser \(now auto\), or use --action fenced$/,
    );
    expect(await tools([{ text: 'I run ls.' }], { token_mode: 'echo' })).toMatch(
      /→ serve the model with its own tool-call parser/,
    );
  });
  test('is refused by the name of the marker and what is wrong with the call', async () => {
    const text = '<|tool_call_begin|>0<|tool_call_argument_begin|>{}<|tool_call_end|>';
    expect(await tools([{ text }])).toMatch(
      /no tool call .*: one begins a call with <\|tool_call_begin\|>, and its id names no function/,
    );
    expect(await tools([{ command: 'ls' }], { tool_parser: 'glm' })).toMatch(
      /one begins a call with <tool_call>, and its form is not the one that is read here .*\(now glm\)/,
    );
  });
  test('in fenced blocks is asked for no call', async () => {
    const script = { conversations: [{ variants: [[{ text: 'I run ls.' }]] }] };
    expect((await probe({ token_mode: 'token-in' }, { script }))[1]).toMatch(/^ok tokens \(tools\)/);
  });
});
