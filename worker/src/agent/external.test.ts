import type { SessionAnswer } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { echoShell, never, SENTINEL, scriptedTask } from '../../test/agent/scripted.ts';
import { runExternalAgent } from './external.ts';

test('feedback is the observation of the command that submits; the input submit is the last', async () => {
  const answers: SessionAnswer[] = [];
  const commands = [`echo ${SENTINEL}`, 'echo on'];
  const end = await runExternalAgent(scriptedTask({ type: 'external', max_submits: 3 }), {
    ...{ shell: echoShell(), signal: never },
    files: { write: async () => null, read: async () => Buffer.alloc(0), diff: async () => Buffer.alloc(0) },
    onSubmit: async () => ({ why: 'not all of them pass', tests: '', repository: 'left as it is' }),
    driver: {
      async next(done) {
        const command = commands[done];
        const input =
          command === undefined
            ? { kind: 'submit' as const }
            : { kind: 'command' as const, command, timeout: null };
        return { seq: done + 1, input, content: null };
      },
      reply: async (answer) => void answers.push(answer),
      pausedMs: () => 0,
    },
  });
  expect(end).toMatchObject({ exit_status: 'submitted', trajectory: { submits: 1 } });
  expect(answers.map(({ seq, observation }) => [seq, observation.split('\n')[0]])).toEqual([
    [1, 'Tests failed: not all of them pass.'],
    [2, '<returncode>0</returncode>'],
  ]);
  expect(end.trajectory.messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant', 'tool']);
});
