import { once } from 'node:events';
import { type BegunAnswer, type RecordedTurn, seenBefore } from '@swefarm/shared';
import { expect, test } from 'vitest';
import {
  type Answer,
  bash,
  depsOf,
  echoShell,
  type ScriptedShell,
  SUBMIT,
  scriptedPolicy,
  scriptedShell,
  scriptedTask,
} from '../../test/agent/scripted.ts';
import type { PolicyOfLines } from './agent.ts';
import { runMiniAgent } from './loop.ts';
import { openReplay, ReplayDiffers } from './replay.ts';

/** Returns a policy of lines that answers by a script. */
function linesOf(answers: Answer[]) {
  const policy = scriptedPolicy(answers);
  const lines: PolicyOfLines = {
    ...policy,
    openLine:
      () =>
      async ({ messages, tools, signal, onResumed }) => {
        onResumed?.();
        return {
          ...(await policy.complete(messages, tools, signal)),
          after: {
            message: { role: 'assistant', content: '' },
            at: 0,
            answer: 1,
            ended: true,
            firstPrompt: null,
          },
        } as never;
      },
    modelLength: async () => null,
    countTokens: async () => null,
  };
  return { lines, requests: policy.requests };
}

/** Plays a rollout that begins with `turns`, and records the others. */
async function play(
  answers: Answer[],
  turns: readonly RecordedTurn[] = [],
  shell = echoShell(),
  mostSeconds = 60,
  begun: BegunAnswer | null = null,
) {
  const recorded: RecordedTurn[] = [];
  const { lines, requests } = linesOf(answers);
  const onRecord = (turn: RecordedTurn) => void recorded.push(turn);
  const nothing = () => undefined;
  const resumed: number[] = [];
  const onResumed = (tokens: number) => void resumed.push(tokens);
  const deps = { onRecord, onBegin: nothing, onOver: nothing, onResumed };
  const replay = openReplay(lines, { turns, begun, mostSeconds, ...deps });
  const { beforeTurn, onAnswer } = replay;
  const end = await runMiniAgent(
    scriptedTask({ time_limit: 1000 }),
    depsOf(replay.policy, shell, { beforeTurn, onAnswer }),
  );
  replay.requireOver();
  return { end, recorded, requests, shell, resumed };
}

const ANSWERS = [bash('echo 1'), 'no block', bash('echo 2'), SUBMIT];

test('a rollout that begins with recorded turns ends like the one that recorded them', async () => {
  const whole = await play(ANSWERS);
  expect(whole.recorded).toHaveLength(4);
  for (let count = 0; count <= 4; count++) {
    const shell = echoShell();
    const again = await play(ANSWERS.slice(count), whole.recorded.slice(0, count), shell);
    expect(again.requests).toHaveLength(4 - count);
    expect(again.recorded).toHaveLength(4 - count);
    expect(again.end.trajectory.messages).toEqual(whole.end.trajectory.messages);
    expect(again.end.exit_status).toBe('submitted');
    expect(shell.commands).toEqual(whole.shell.commands);
  }
});

const printing = (text: string): ScriptedShell =>
  scriptedShell((command) => (command === 'echo 1' ? { output: text } : {}));

test('the model keeps the times that it saw first', async () => {
  const first = await play(ANSWERS, [], printing('1 passed in 0.10s'));
  const again = await play(ANSWERS.slice(3), first.recorded.slice(0, 3), printing('1 passed in 2.31s'));
  expect(again.end.trajectory.messages).toEqual(first.end.trajectory.messages);
});

test.each([
  ['prints something else', printing('2'), 1],
  ['exits with another code', scriptedShell(() => ({ output: '1\n', exitCode: 3 })), 1],
  ['submits', scriptedShell(() => ({ output: 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n' })), 1],
])('a command that %s ends the replay', async (_what, shell, turn) => {
  const { recorded } = await play(ANSWERS);
  const again = play([SUBMIT], recorded.slice(0, 3), shell);
  await expect(again).rejects.toThrow(ReplayDiffers);
  await expect(again).rejects.toMatchObject({ turn });
});

test('other first messages end the replay before any command', async () => {
  const { recorded } = await play(ANSWERS);
  const [first, ...rest] = recorded as [RecordedTurn, ...RecordedTurn[]];
  const shell = echoShell();
  await expect(play([SUBMIT], [{ ...first, start: 'other' }, ...rest], shell)).rejects.toMatchObject({
    turn: 0,
  });
  expect(shell.commands).toEqual([]);
});

test('a replay that takes longer than the time limit ends', async () => {
  const { recorded } = await play(ANSWERS);
  await expect(play([SUBMIT], recorded.slice(0, 3), echoShell(), -1)).rejects.toThrow('longer than');
});

test('the agent’s clock continues at the recorded time', async () => {
  const { recorded } = await play(ANSWERS);
  const at = 999.9;
  const late = recorded.slice(0, 2).map((turn, index) => ({ ...turn, at: index === 1 ? at : 1 }));
  const again = await play([bash('echo 2'), SUBMIT], late);
  expect(again.recorded.every((turn) => turn.at >= at)).toBe(true);
});

test('an interrupted answer is continued once, if the prompt is the same', async () => {
  const { recorded } = await play(ANSWERS);
  const third = recorded[2] as RecordedTurn;
  const part = { prompt: '', text: 'T', ids: Int32Array.of(7), log_probs: Float32Array.of(-1) };
  const begun = { ...third, ...part, versions: [], seconds: 500 };
  const [same, other, first] = await Promise.all([
    play(ANSWERS.slice(2), recorded.slice(0, 2), echoShell(), 60, begun),
    play(ANSWERS.slice(2), recorded.slice(0, 2), echoShell(), 60, { ...begun, exit_codes: [4] }),
    play(ANSWERS, [], echoShell(), 60, { ...begun, ...seenBefore({ messages: [], turns: [] }, 0) }),
  ]);
  expect([same.resumed, other.resumed, first.resumed]).toEqual([[1], [], []]);
  // The agent's clock includes the seconds of the part.
  expect(same.recorded[0]?.at).toBeGreaterThan(500);
  expect(other.recorded[0]?.at).toBeLessThan(500);
  expect(other.end.exit_status).toBe('submitted');
});

test('the time limit includes the continued part of an answer at once', async () => {
  const { recorded } = await play(ANSWERS);
  const part = { prompt: '', text: 'T', ids: Int32Array.of(7), log_probs: Float32Array.of(-1) };
  const begun = { ...(recorded[2] as RecordedTurn), ...part, versions: [], seconds: 2000 };
  const silent: Answer = (signal) => once(signal, 'abort').then(() => Promise.reject(signal.reason));
  const { end, resumed } = await play([silent], recorded.slice(0, 2), echoShell(), 60, begun);
  expect([end.exit_status, resumed]).toEqual(['time_limit', [1]]);
});

test('replayed tokens are those that were recorded', async () => {
  const ids = (...list: number[]) => Int32Array.from(list);
  const reply = (prompt: number[], answer: number[]) => ({
    reply: {
      message: { role: 'assistant' as const, content: bash('echo 1') },
      prompt_token_ids: ids(...prompt),
      generation_token_ids: ids(...answer),
      generation_log_probs: Float32Array.from(answer, () => -1),
      usage: { prompt_tokens: prompt.length, completion_tokens: answer.length },
    },
  });
  const answers = [reply([1, 2], [3]), reply([1, 2, 3, 4], [5, 6]), SUBMIT];
  const whole = await play(answers);
  const again = await play([SUBMIT], whole.recorded.slice(0, 2));
  const tokens = again.end.trajectory.turns.map((turn) => turn.tokens);
  expect(tokens.slice(0, 2)).toEqual(whole.end.trajectory.turns.slice(0, 2).map((turn) => turn.tokens));
  expect(tokens[1]).toMatchObject({ prefix_length: 3, prompt_suffix: ids(4), generation: ids(5, 6) });
});
