import { SandboxKilledError } from '@swefarm/sandbox';
import { RolloutFailure, type Trajectory } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import {
  type Answer,
  bash,
  depsOf,
  echoShell,
  play,
  replyOf,
  SENTINEL,
  SUBMIT,
  scriptedInstance,
  scriptedPolicy,
  scriptedShell,
  scriptedTask,
  toolCalls,
} from '../../test/agent/scripted.ts';
import { runMiniAgent } from './loop.ts';

describe('a rollout that submits', () => {
  test('a command and a submission are recorded in order', async () => {
    const policy = scriptedPolicy([bash('echo hello'), SUBMIT]);
    const end = await runMiniAgent(scriptedTask(), depsOf(policy, echoShell()));
    expect(end).toMatchObject({ exit_status: 'submitted', submission: '', sandbox_killed: false });
    const { messages, turns } = end.trajectory;
    const roles = ['system', 'user', 'assistant', 'user', 'assistant'];
    expect(messages.map((message) => message.role)).toEqual(roles);
    expect(messages[1]?.content).toContain('The parser forgets {{braces}}.');
    expect(messages[3]?.content).toBe('<returncode>0</returncode>\n<output>\nhello\n</output>');
    expect(turns.map((turn) => turn.message)).toEqual([2, 4]);
    expect(turns[0]?.commands).toMatchObject([
      { command: 'echo hello', exit_code: 0, output_bytes: 6, note: null },
    ]);
    expect(end.trajectory).toMatchObject({ exit_status: 'submitted', model: 'scripted', token_mode: 'text' });
  });
  test('the policy sees shown_id in place of an id that reveals the solution', async () => {
    const instance = { ...scriptedInstance, instance_id: 'project-fedcba09', shown_id: 'project-1' };
    const policy = scriptedPolicy([SUBMIT]);
    const prompt_overrides = { system: 'Instance {{instance_id}}.' };
    await runMiniAgent({ ...scriptedTask({ prompt_overrides }), instance }, depsOf(policy, echoShell()));
    expect(policy.requests[0]?.[0]?.content).toBe('Instance project-1.');
    expect(JSON.stringify(policy.requests)).not.toContain('fedcba09');
  });
  test('the trajectory records the tools; in fenced mode it has none', async () => {
    const shown = await play([toolCalls(['submit_solution', '{}'])], { action: 'tool' });
    expect(shown.trajectory.tools?.map((tool) => tool.function.name)).toEqual(['bash', 'submit_solution']);
    expect((await play([SUBMIT])).trajectory).not.toHaveProperty('tools');
  });
  test('the text after the sentinel is the submission', async () => {
    const shell = scriptedShell(() => ({ output: `${SENTINEL}\ndiff --git a b\n` }));
    expect((await play([bash('cat patch')], {}, shell)).submission).toBe('diff --git a b\n');
  });
  test('history is append-only: each request begins with the previous one', async () => {
    const policy = scriptedPolicy([bash('echo 1'), 'no block', bash('echo 2'), SUBMIT]);
    await runMiniAgent(scriptedTask(), depsOf(policy, echoShell()));
    expect(policy.requests).toHaveLength(4);
    for (let i = 1; i < 4; i++) {
      const before = policy.requests[i - 1] ?? [];
      expect(policy.requests[i]?.slice(0, before.length)).toEqual(before);
    }
  });
  test('reasoning is stored with its message', async () => {
    const end = await play([{ content: SUBMIT, reasoning_content: 'because' }]);
    expect(end.trajectory.messages[2]).toMatchObject({ reasoning_content: 'because' });
  });
  test('each turn is reported once', async () => {
    const seen: number[] = [];
    const onTurn = (trajectory: Trajectory) => void seen.push(trajectory.turns.length);
    const policy = scriptedPolicy([bash('ls'), 'what', SUBMIT]);
    await runMiniAgent(scriptedTask(), depsOf(policy, echoShell(), { onTurn }));
    expect(seen).toEqual([1, 2, 3]);
  });
});

describe('tool calls', () => {
  const config = { action: 'tool' };
  test('run in order with one tool message each; submit_solution ends the rollout', async () => {
    const two = toolCalls(['bash', '{"command":"echo a"}'], ['bash', '{"command":"echo b"}']);
    const end = await play([two, toolCalls(['submit_solution', '{}'])], config);
    expect(end).toMatchObject({ exit_status: 'submitted', submission: null });
    const toolMessages = end.trajectory.messages.filter((message) => message.role === 'tool');
    expect(toolMessages.map((message) => message.tool_call_id)).toEqual(['call_0', 'call_1']);
    expect(toolMessages[1]?.content).toContain('\nb\n');
    expect(end.trajectory.turns[0]?.commands).toHaveLength(2);
  });
  test('calls after submit_solution do not run', async () => {
    const shell = echoShell();
    const calls = toolCalls(['submit_solution', '{"submission":"p"}'], ['bash', '{"command":"ls"}']);
    await play([calls], config, shell);
    expect(shell.commands).toEqual([]);
  });
  test('one bad call makes the answer malformed: nothing runs, each call gets a message', async () => {
    const shell = echoShell();
    const bad = toolCalls(['bash', '{"command":"ls"}'], ['bash', '{"command":']);
    const end = await play([bad, toolCalls(['submit_solution', '{}'])], config, shell);
    expect(shell.commands).toEqual([]);
    const toolMessages = end.trajectory.messages.filter((message) => message.role === 'tool');
    expect(toolMessages).toHaveLength(2);
    expect(toolMessages[0]?.content).toMatch(/not a JSON object/);
  });
  test('repeated invalid JSON ends as format_limit', async () => {
    const end = await play([toolCalls(['bash', 'Infinity'])], config);
    expect(end).toMatchObject({ exit_status: 'format_limit' });
    expect(end.trajectory.turns).toHaveLength(3);
  });
  test('a server that refuses a history with invalid JSON ends the rollout as format_limit', async () => {
    const refusal = new RolloutFailure('policy_bad_request', 'HTTP 400 Expecting value');
    const end = await play([toolCalls(['bash', '{']), refusal], config);
    expect(end.exit_status).toBe('format_limit');
    await expect(play([toolCalls(['bash', '{"command":"ls"}']), refusal], config)).rejects.toBe(refusal);
  });
});

describe('repeated commands', () => {
  const warnings = (trajectory: Trajectory) =>
    trajectory.messages
      .map((message) => /(\d+) times in a row/.exec(message.content ?? '')?.[1])
      .filter(Boolean);
  test('get a warning from the limit on', async () => {
    const end = await play([bash('ls'), bash('ls'), bash('ls'), bash('ls'), bash('pwd'), bash('ls'), SUBMIT]);
    expect(warnings(end.trajectory)).toEqual(['3', '4']);
  });
  test('get no warning if the limit is 0', async () => {
    const end = await play([bash('ls')], { collapse_limit: 0, step_limit: 6 });
    expect(warnings(end.trajectory)).toEqual([]);
  });
});

describe('the sandbox', () => {
  test('a sandbox killed by its own limit ends the rollout with its trajectory', async () => {
    const shell = scriptedShell(() => new SandboxKilledError('out of memory'));
    const end = await play([bash('fork bomb')], {}, shell);
    expect(end).toMatchObject({ exit_status: null, sandbox_killed: true });
    expect(end.trajectory.turns[0]?.commands).toMatchObject([{ command: 'fork bomb', exit_code: null }]);
  });
  test('a sandbox lost for another reason is a failure; the turn was reported', async () => {
    const lost = new RolloutFailure('sandbox_lost', 'gone');
    let turns = 0;
    const shell = scriptedShell(() => lost);
    const deps = depsOf(scriptedPolicy([bash('ls')]), shell, { onTurn: () => turns++ });
    await expect(runMiniAgent(scriptedTask(), deps)).rejects.toBe(lost);
    expect(turns).toBe(1);
  });
  test('a command killed by a limit is an observation', async () => {
    const shell = scriptedShell((command) =>
      command === 'eat' ? { exitCode: 137, note: 'killed_by_limit' } : { output: SENTINEL },
    );
    const end = await play([bash('eat'), SUBMIT], {}, shell);
    expect(end.exit_status).toBe('submitted');
    expect(end.trajectory.messages[3]?.content).toMatch(/needed more memory/);
  });
});

describe('aborting', () => {
  test('throws the reason at once during a request', async () => {
    const controller = new AbortController();
    const reason = new Error('cancelled');
    const waits: Answer = (signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const { signal } = controller;
    const running = runMiniAgent(scriptedTask(), depsOf(scriptedPolicy([waits]), echoShell(), { signal }));
    setTimeout(() => controller.abort(reason), 20);
    await expect(running).rejects.toBe(reason);
  });
  test('sends no request if aborted before the first turn', async () => {
    const policy = scriptedPolicy([SUBMIT]);
    const signal = AbortSignal.abort(new Error('drain'));
    const running = runMiniAgent(scriptedTask(), depsOf(policy, echoShell(), { signal }));
    await expect(running).rejects.toThrow('drain');
    expect(policy.requests).toEqual([]);
  });
});

describe('token ids', () => {
  const withTokens = (content: string, prompt: number[], generation: number[]): Answer => ({
    reply: replyOf(content, {
      prompt_token_ids: Int32Array.from(prompt),
      generation_token_ids: Int32Array.from(generation),
      generation_log_probs: new Float32Array(generation.length),
      usage: null,
    }),
  });
  const broken = [withTokens(bash('ls'), [1, 2], [3]), withTokens(SUBMIT, [1, 9, 3, 4], [5])];
  test('are stored by suffix', async () => {
    const end = await play([withTokens(bash('ls'), [1, 2], [3]), withTokens(SUBMIT, [1, 2, 3, 4], [5])]);
    expect(end.trajectory.contiguous).toBe(true);
    expect(end.trajectory.turns[1]?.tokens).toMatchObject({
      prefix_length: 3,
      prompt_suffix: Int32Array.of(4),
    });
  });
  test('that are not contiguous are stored and marked if the run does not require them', async () => {
    const end = await play(broken);
    expect(end).toMatchObject({ exit_status: 'submitted', trajectory: { contiguous: false } });
  });
  test('that are not contiguous fail a run that requires them, with the turn reported', async () => {
    const seen: Trajectory[] = [];
    const policy = scriptedPolicy(broken, { require_tokens: true });
    const deps = depsOf(policy, echoShell(), { onTurn: (trajectory) => void seen.push(trajectory) });
    await expect(runMiniAgent(scriptedTask(), deps)).rejects.toThrow(/^turn 2: .* token 1 of 3 was 2, is 9/);
    expect(seen.at(-1)).toMatchObject({ turns: [{}, { tokens: null }] });
  });
  test('count for the context limit if usage is missing', async () => {
    const end = await play([withTokens(bash('ls'), [1, 2, 3], [4, 5])], { context_limit: 5 });
    expect(end.trajectory.turns).toHaveLength(1);
    expect(end.exit_status).toBe('context_limit');
  });
});

test('beforeTurn may abort the rollout before its next request', async () => {
  const controller = new AbortController();
  const policy = scriptedPolicy([bash('echo one')]);
  const deps = depsOf(policy, echoShell(), {
    signal: controller.signal,
    beforeTurn: ({ turns }) => {
      if (turns.length === 2) controller.abort(new Error('too old'));
    },
  });
  await expect(runMiniAgent(scriptedTask(), deps)).rejects.toThrow('too old');
  expect(policy.requests).toHaveLength(2);
});
