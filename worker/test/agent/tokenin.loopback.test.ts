/** Mode token-in against the scripted policy server with real tokenizers and chat templates. */
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cumulative } from '@swefarm/policy';
import { AgentConfig, PolicyConfig, RolloutFailure } from '@swefarm/shared';
import { type ScriptedPolicyOptions, startScriptedPolicy } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { AgentEnd } from '../../src/agent/agent.ts';
import { runMiniAgent } from '../../src/agent/loop.ts';
import { depsOf, echoShell, policyAt, scriptedTask } from './scripted.ts';

vi.setConfig({ testTimeout: 180_000 });

type Turn = NonNullable<
  Exclude<ScriptedPolicyOptions['script'], string>['conversations'][0]['variants'][0]
>[0];

/** Six turns with features that break resent text: thinking, a cut answer, unusual white space, a turn without a command. */
const TALK: Turn[] = [
  { think: 'What is there?', thought: '  Two  spaces.', command: 'echo one' },
  { think: 'Cut.', finish_reason: 'length', command: 'echo never' },
  { command: 'echo  "ünïcode  \\u00e9"' },
  { text: 'No command at all.' },
  { think: 'Again.', command: 'echo two' },
  { submit: true },
];

async function play(config: Record<string, unknown>, agent: Record<string, unknown>, options: object = {}) {
  const server = await startScriptedPolicy({
    script: { conversations: [{ variants: [TALK] }] },
    ...options,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const { max_sequence_tokens: sequenceBudget } = AgentConfig.parse(agent);
  const policy = policyAt(
    PolicyConfig.parse({ urls: [server.url], model: 'm', patience: 0, require_tokens: true, ...config }),
    { limits: { contextLimit: null, sequenceBudget } },
  );
  onTestFinished(() => policy[Symbol.dispose]());
  const shell = echoShell();
  const end = await runMiniAgent(scriptedTask(AgentConfig.parse({ ...agent })), depsOf(policy, shell));
  return { end, server, shell };
}

async function tokenizerFolder(template: string): Promise<string> {
  const folder = temporaryFolder('tokenizer');
  const from = (name: string) =>
    fileURLToPath(new URL(`../../../testkit/fixtures/tokenizer/${name}`, import.meta.url));
  await copyFile(from('tokenizer.json'), join(folder, 'tokenizer.json'));
  await copyFile(from(`${template}.jinja`), join(folder, 'chat_template.jinja'));
  return folder;
}

const promptsOf = ({ trajectory }: AgentEnd) =>
  [...cumulative(trajectory.turns.map(({ tokens }) => tokens))].map(({ prompt }) => Array.from(prompt));

const TEMPLATES = ['plain', 'strips-thinking'];

describe.each(['fenced', 'tool'])('%s answers', (action) => {
  test.each(TEMPLATES)('are contiguous under the template %s', async (template) => {
    const { end, shell } = await play({ token_mode: 'token-in' }, { action }, { template });
    const { trajectory } = end;
    expect(end.exit_status).toBe('submitted');
    expect(shell.commands.slice(0, 2)).toEqual(['echo one', 'echo  "ünïcode  \\u00e9"']);
    expect(trajectory).toMatchObject({ token_mode: 'token-in', contiguous: true });
    expect(trajectory.turns.map(({ tokens }) => tokens === null)).toEqual(TALK.map(() => false));
    expect(trajectory.messages.filter(({ role }) => role === 'assistant')[0]).toMatchObject({
      reasoning_content: 'What is there?',
    });
  });

  test.each(TEMPLATES)('with a tokenizer folder the prompts are the same (%s)', async (template) => {
    const tokenizer = await tokenizerFolder(template);
    const [served, local] = [
      await play({ token_mode: 'token-in' }, { action }, { template }),
      await play({ token_mode: 'token-in', tokenizer }, { action }, { template }),
    ];
    expect(promptsOf(local.end)).toEqual(promptsOf(served.end));
  });

  // In mode echo the server itself continues the prefix with its own template.
  test.each(TEMPLATES)('the prompts equal those of a server in mode echo (%s)', async (template) => {
    const [tokenIn, echo] = [
      await play({ token_mode: 'token-in' }, { action }, { template }),
      await play({ token_mode: 'echo' }, { action }, { template }),
    ];
    expect(promptsOf(tokenIn.end)).toEqual(promptsOf(echo.end));
  });
});

test('a token budget is exact in an answer, in an observation and between turns', async () => {
  const whole = await play({ token_mode: 'token-in' }, { max_sequence_tokens: 5000 });
  expect(whole.end.exit_status).toBe('submitted');
  const lengths = (end: AgentEnd) => {
    const turns = end.trajectory.turns.flatMap(({ tokens }) => tokens ?? []);
    const prompts = turns.reduce((sum, { prompt_suffix }) => sum + prompt_suffix.length, 0);
    const answers = turns.reduce((sum, { generation }) => sum + generation.length, 0);
    return { after: prompts + answers - (turns[0]?.prompt_suffix.length ?? 0), turns: turns.length };
  };
  const needed = lengths(whole.end).after;
  for (let budget = 1; budget < needed; budget += Math.ceil(needed / 11)) {
    const { end } = await play({ token_mode: 'token-in' }, { max_sequence_tokens: budget });
    expect(end, `budget ${budget}`).toMatchObject({
      exit_status: 'context_limit',
      trajectory: { limit: 'max_sequence_tokens', contiguous: true },
    });
    const { after, turns } = lengths(end);
    expect(turns).toBeGreaterThan(0);
    expect(after).toBeLessThanOrEqual(budget);
  }
  const exact = await play({ token_mode: 'token-in' }, { max_sequence_tokens: needed });
  expect(exact.end.exit_status).toBe('submitted');
});

test('resent text fails under a template that strips thinking, with turn, token and texts', async () => {
  const failure = await play(
    { token_mode: 'text' },
    { action: 'fenced' },
    { template: 'strips-thinking' },
  ).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(RolloutFailure);
  expect(failure).toMatchObject({ failureClass: 'policy_tokens' });
  expect(String(failure)).toMatch(/turn 2: .* token \d+ of \d+ was \d+, is \d+ \(".+" became ".+"\)/);
});

test('an answer without ids fails the rollout', async () => {
  const failure = await play(
    { token_mode: 'token-in' },
    {},
    { faults: [{ kind: 'missing_token_ids', turn: 1 }] },
  ).catch((error: unknown) => error);
  expect(failure).toMatchObject({ failureClass: 'policy_tokens' });
});

test('a turn that is retried after a fault is the same turn', async () => {
  const { end, server } = await play(
    { token_mode: 'token-in', patience: 20 },
    {},
    { faults: [{ kind: 'unavailable', turn: 2, times: 2 }] },
  );
  expect(end.trajectory.contiguous).toBe(true);
  expect(end.trajectory.turns).toHaveLength(TALK.length);
  expect(server.stats().requests).toBe(TALK.length + 2);
});
