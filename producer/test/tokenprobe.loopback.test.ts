/** The probe before a training run, against the scripted policy server: what it lets pass and what it refuses by name. */
import { PolicyConfig } from '@swefarm/shared';
import { type ScriptedPolicyOptions, startScriptedPolicy } from '@swefarm/testkit';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { probeTokens } from '../src/tokenprobe.ts';

vi.setConfig({ testTimeout: 60_000 });

const THINKING = [
  { think: 'A list, so ls.', thought: 'This one.', command: 'ls -a' },
  { command: 'cat README.md' },
  { text: 'That is all.' },
];

async function probe(config: object, options: Partial<ScriptedPolicyOptions> = {}) {
  const server = await startScriptedPolicy({
    script: { conversations: [{ variants: [THINKING] }] },
    ...options,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const policy = PolicyConfig.parse({ urls: [server.url], model: 'm', ...config });
  const signal = new AbortController().signal;
  const found = await probeTokens(server.url, { config: policy, apiKey: null, signal });
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
