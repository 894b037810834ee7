/** Agents of the farm and agents that come as programs at a Harbor task: the reward of the verifier, and the exact ids of each answer. */
import { cumulative } from '@swefarm/policy';
import { running } from '@swefarm/testkit';
import { describe, expect, test, vi } from 'vitest';
import { answered, rollOut, SOLVES, type Trial, useMachine } from './installedscene.ts';
import { taskOf } from './matrix/harbortasks.ts';
import { RUNTIMES } from './matrix/runtimes.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const AGENTS: Record<string, Trial> = {
  mini: { mini: true, turns: running('cat answer.txt', 'echo 42 >answer.txt') },
  'a card': { turns: SOLVES },
};
const IDLE: Record<string, Trial> = {
  mini: { mini: true, turns: running('cat answer.txt') },
  'a card': { turns: [SOLVES[0], SOLVES[2]].flatMap((turn) => turn ?? []) },
};

describe.each(RUNTIMES)('on %s', (runtime) => {
  const machine = useMachine(runtime);

  test.each([
    ...Object.entries(AGENTS).map(([name, trial]) => [name, trial, 1] as const),
    ...Object.entries(IDLE).map(([name, trial]) => [name, trial, 0] as const),
  ])('%s gets its reward at a Harbor task, and the farm records its tokens', async (_, given, reward) => {
    const trial = await rollOut(await machine(), { ...given, instance: taskOf() });
    await trial.attempt();
    const result = await trial.result();
    expect([result?.failure, await trial.ends()]).toEqual([null, ['done']]);
    expect(result).toMatchObject({ outcome: 'judged', exit_status: 'submitted', reward });
    expect(result).toMatchObject({ reward_components: { reward }, facts: { trust: 'clean' } });
    const { turns = [], contiguous, messages = [] } = (await trial.stored())?.trajectory ?? {};
    expect([contiguous, turns.length, await trial.left()]).toEqual([true, answered(trial.server), 0]);
    expect(messages.some(({ content }) => content?.includes('41'))).toBe(true);
    const ids = [...cumulative(turns.map(({ tokens }) => tokens))];
    expect(ids).toHaveLength(turns.length);
    const sampled = ids.reduce((sum, { generation }) => sum + generation.length, 0);
    expect([sampled, sampled > 0]).toEqual([result?.tokens.completion, true]);
  });
});
