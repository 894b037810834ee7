import type { Trajectory } from '@swefarm/shared';
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
  scriptedPolicy,
  scriptedShell,
  scriptedTask,
  toolCalls,
} from '../../test/agent/scripted.ts';
import type { Feedback } from './agent.ts';
import { runMiniAgent } from './loop.ts';

const cutOff = (content: string): Answer => ({
  reply: { message: { role: 'assistant', content }, finish_reason: 'length' },
});
const lastMessage = (trajectory: Trajectory) => trajectory.messages.at(-1)?.content ?? '';

describe('limits', () => {
  test('turn_limit: the last command runs', async () => {
    const shell = echoShell();
    const end = await play([bash('echo x')], { step_limit: 4 }, shell);
    expect(end).toMatchObject({ exit_status: 'turn_limit', submission: null });
    expect(shell.commands).toHaveLength(4);
  });
  test.each([
    ['answer_limit', { answer_limit: 45 }, 3],
    ['cost_limit', { cost_limit: 0.00021 }, 2],
  ])('%s: the turn that reaches it is the last', async (_, config, turns) => {
    const shell = echoShell();
    const usage = { prompt_tokens: 100, completion_tokens: 20 };
    const price = { prompt: 1, completion: 0.5 };
    const policy = scriptedPolicy([{ reply: replyOf(bash('echo x'), { usage }) }], { price });
    const end = await runMiniAgent(scriptedTask(config), depsOf(policy, shell));
    expect([end.exit_status, end.trajectory.turns.length]).toEqual(['turn_limit', turns]);
    expect(shell.commands).toHaveLength(turns);
  });
  test('a submission in the last turn counts', async () => {
    expect((await play([bash('ls'), SUBMIT], { step_limit: 2 })).exit_status).toBe('submitted');
  });
  test('context_limit by usage: the commands of the last answer run', async () => {
    const shell = echoShell();
    const usage = { prompt_tokens: 900, completion_tokens: 100 };
    const long = { reply: replyOf(bash('echo x'), { usage }) };
    const end = await play([bash('echo y'), long], { context_limit: 1000 }, shell);
    expect(end.exit_status).toBe('context_limit');
    expect(shell.commands).toEqual(['echo y', 'echo x']);
  });
  test('an answer limited to the rest of the budget ends as max_sequence_tokens', async () => {
    const cut = (prompt: number, answer: number) => ({
      reply: replyOf('And so on', {
        ...{ finish_reason: 'length', usage: { prompt_tokens: prompt, completion_tokens: answer } },
      }),
    });
    const end = await play([cut(100, 40), cut(160, 20), cut(190, 10)], { max_sequence_tokens: 100 });
    expect(end).toMatchObject({ exit_status: 'context_limit', cut_by_token_limit: true });
    expect(end.trajectory.limit).toBe('max_sequence_tokens');
    const ours = await play([cut(100, 40), cut(160, 20), cut(190, 10)], { max_sequence_tokens: 101 });
    expect(ours.trajectory.limit).toBe('max_tokens');
  });
  test('missing experts that the run requires fail the rollout', async () => {
    const reply = { prompt_token_ids: new Int32Array(3), generation_token_ids: new Int32Array(1) };
    const withoutExperts = { reply: { ...reply, generation_log_probs: new Float32Array(1), usage: null } };
    const policy = scriptedPolicy([withoutExperts], { require_tokens: true, routed_experts: 'require' });
    await expect(runMiniAgent(scriptedTask(), depsOf(policy, echoShell()))).rejects.toMatchObject({
      failureClass: 'policy_tokens',
      message: expect.stringContaining('turn 1: routed_experts: there are none'),
    });
  });
  test('context_limit by the endpoint', async () => {
    const end = await play([bash('ls'), { context_overflow: true, message: 'too long', seconds: 0 }]);
    expect(end).toMatchObject({ exit_status: 'context_limit', cut_by_token_limit: false });
    expect(end.trajectory.turns).toHaveLength(1);
    expect(end.trajectory.limit).toBe('endpoint');
  });
  test.each(['usage', 'ids'])(
    'max_sequence_tokens by %s: all tokens after the first prompt count',
    async (by) => {
      const turn = (prompt: number, answer: number) => ({
        reply: replyOf(bash(`echo ${prompt}`), {
          usage: by === 'usage' ? { prompt_tokens: prompt, completion_tokens: answer } : null,
          prompt_token_ids: new Int32Array(prompt),
          generation_token_ids: new Int32Array(answer),
          generation_log_probs: new Float32Array(answer),
        }),
      });
      const shell = echoShell();
      const answers = [turn(5000, 10), turn(5030, 20), turn(5070, 30), turn(5200, 1)];
      const end = await play(answers, { max_sequence_tokens: 100 }, shell);
      expect(end).toMatchObject({ exit_status: 'context_limit', submission: null });
      expect(end.trajectory.limit).toBe('max_sequence_tokens');
      // The turn that reaches the limit is complete: its command runs, and the tree is graded.
      expect(shell.commands).toEqual(['echo 5000', 'echo 5030', 'echo 5070']);
      const below = await play(answers.slice(0, 1), { max_sequence_tokens: 100, step_limit: 3 });
      expect(below.exit_status).toBe('turn_limit');
    },
  );
  test('time_limit during a request aborts it', async () => {
    const never: Answer = (signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const started = performance.now();
    const end = await play([bash('ls'), never], { time_limit: 0.2 });
    expect(performance.now() - started).toBeLessThan(20_000);
    expect(end.exit_status).toBe('time_limit');
    expect(end.model_seconds).toBeGreaterThan(0.15);
    expect(end.trajectory.turns).toHaveLength(1);
  });
  test('time_limit during a command: the command gets only the remaining time', async () => {
    const shell = scriptedShell((_, { timeoutMs }) => {
      expect(timeoutMs).toBeLessThanOrEqual(100);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, timeoutMs);
      return { exitCode: null, note: 'timed_out' };
    });
    const end = await play([bash('sleep 9')], { time_limit: 0.1, step_timeout: 60 }, shell);
    expect(end.exit_status).toBe('time_limit');
    expect(end.command_seconds).toBeGreaterThan(0.05);
    expect(lastMessage(end.trajectory)).toMatch(/still running after 0\.1 seconds/);
  });
  test('a command gets its own time limit and an output limit', async () => {
    const shell = echoShell();
    await play([bash('ls'), SUBMIT], { step_timeout: 7, observation_limit: 100 }, shell);
    expect(shell.options[0]).toMatchObject({ timeoutMs: 7000, maxOutputBytes: 400 });
  });
});

describe('malformed answers', () => {
  test('the model gets the reason; too many in a row end the rollout', async () => {
    const end = await play(['no block'], { format_limit: 3 });
    expect(end).toMatchObject({ exit_status: 'format_limit', cut_by_token_limit: false });
    expect(end.trajectory.turns).toHaveLength(3);
    expect(end.trajectory.messages[3]?.content).toMatch(/contains no ```bash block/);
  });
  test('only consecutive ones count', async () => {
    const answers = ['a', 'b', bash('ls'), cutOff('c'), 'd', SUBMIT];
    const end = await play(answers, { format_limit: 3 });
    // A cut answer counts towards the limit, but not as an answer of a wrong form.
    expect(end).toMatchObject({ exit_status: 'submitted', malformed_answers: 3 });
  });
  test('an answer without content is malformed', async () => {
    expect((await play([{ content: null }], { format_limit: 1 })).exit_status).toBe('format_limit');
  });
});

describe('answers cut by the token limit', () => {
  test('nothing of a cut answer runs; the model is told and the rollout continues', async () => {
    const shell = echoShell();
    const end = await play([cutOff(`${bash('rm -rf src')}\nand th`), SUBMIT], {}, shell);
    expect(shell.commands).toEqual([`echo ${SENTINEL}`]);
    expect(end).toMatchObject({ exit_status: 'submitted', cut_by_token_limit: false });
    expect(end.trajectory.messages[3]?.content).toMatch(/limit of tokens/);
  });
  test('too many in a row end as context_limit, so that the tree is graded', async () => {
    const end = await play([cutOff('I th')], { format_limit: 2 });
    expect(end).toMatchObject({ exit_status: 'context_limit', cut_by_token_limit: true });
  });
  test('the last one decides the exit status', async () => {
    const end = await play([cutOff('I th'), 'no block'], { format_limit: 2 });
    expect(end).toMatchObject({ exit_status: 'format_limit', cut_by_token_limit: false });
  });
  test('a limit reached by a cut answer is recorded', async () => {
    const end = await play([bash('ls'), cutOff('I th')], { step_limit: 2 });
    expect(end).toMatchObject({ exit_status: 'turn_limit', cut_by_token_limit: true });
  });
  test('each call of a cut answer gets a message', async () => {
    const message = { role: 'assistant', ...toolCalls(['bash', '{"comm']) } as never;
    const half: Answer = { reply: { message, finish_reason: 'length' } };
    const end = await play([half, toolCalls(['submit_solution', ''])], { action: 'tool' });
    expect(end.exit_status).toBe('submitted');
    expect(end.trajectory.messages[3]).toMatchObject({ role: 'tool', tool_call_id: 'call_0' });
  });
});

describe('max_submits', () => {
  const submits = async (
    config: object,
    feedback: (number: number) => Feedback | null,
    answers: Answer[] = [SUBMIT],
  ) => {
    const given: (string | null)[] = [];
    const onSubmit = async (submission: string | null) => {
      given.push(submission);
      return feedback(given.length);
    };
    const policy = scriptedPolicy(answers);
    const end = await runMiniAgent(
      scriptedTask(config as Record<string, unknown>),
      depsOf(policy, echoShell(), { onSubmit }),
    );
    return { end, given };
  };
  const FAILED = { why: 'not all of them pass', tests: '', repository: 'left as it is' };

  test('a submit that fails goes on with the reason; the last is not judged', async () => {
    const { end, given } = await submits({ max_submits: 3 }, () => FAILED);
    expect(end).toMatchObject({ exit_status: 'submitted', trajectory: { submits: 3 } });
    expect(given).toHaveLength(2);
    const shown = end.trajectory.messages.filter(({ role }) => role === 'user').slice(1);
    expect(shown.map(({ content }) => content)).toEqual([
      expect.stringMatching(/^Tests failed: not all of them pass\.\n\n.* You have 2 more/),
      expect.stringContaining('You have 1 more'),
    ]);
  });
  test('a submit whose tests pass ends the rollout', async () => {
    const { end } = await submits({ max_submits: 3 }, (number) => (number === 1 ? FAILED : null));
    expect(end).toMatchObject({ exit_status: 'submitted', trajectory: { submits: 2, turns: [{}, {}] } });
  });
  test('a tool call that submits gets the reason as its result, and later calls run', async () => {
    const answer = toolCalls(['submit_solution', '{}'], ['bash', '{"command":"echo on"}']);
    const { end } = await submits({ max_submits: 2, action: 'tool' }, () => FAILED, [answer]);
    expect(end.trajectory.messages.slice(3, 5)).toMatchObject([
      { role: 'tool', tool_call_id: 'call_0', content: expect.stringContaining('Tests failed') },
      { role: 'tool', tool_call_id: 'call_1' },
    ]);
  });
  test('without it, nothing is judged or counted', async () => {
    const { end, given } = await submits({}, () => FAILED);
    expect([given, end.trajectory.submits]).toEqual([[], undefined]);
  });
});
