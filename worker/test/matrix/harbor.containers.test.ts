/** Tests Harbor tasks on each runtime. An honest agent gets the reward. No agent gets an undeserved reward or avoids a verdict. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HARBOR_VOIDS, HARBOR_WINS, taskOf } from './harbortasks.ts';
import { RUNTIMES } from './runtimes.ts';
import { type Machine, openMachine, openRollouts, type Rollouts, type RunGiven } from './scene.ts';
import { guarded } from './voids.ts';

describe.each(RUNTIMES)('on %s', (name) => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await openMachine(name);
  });
  afterAll(() => machine[Symbol.asyncDispose]());

  const attempted = async (given: RunGiven) => {
    await using rollouts = await openRollouts(machine, given);
    await rollouts.attempt(0);
    return (await rollouts.resultOf(0)) ?? { journal: await rollouts.journal(0) };
  };
  const honest = { agents: [['echo 42 >answer.txt']] };

  test('an honest agent gets the rewards of the verifier', async () => {
    const result = await attempted({ ...honest, instance: taskOf() });
    expect(result).toMatchObject({ outcome: 'judged', reward: 1, reward_row: 'scored', attempt: 1 });
    expect(result).toMatchObject({ reward_components: { reward: 1 }, facts: { trust: 'clean' } });
  });

  test('an agent that reaches its time limit is graded', async () => {
    const agents = [['echo 42 >answer.txt', 'sleep 30', 'sleep 30', 'sleep 30']];
    const result = await attempted({ agents, instance: taskOf(undefined, { agent: { timeout: 6 } }) });
    expect(result).toMatchObject({ outcome: 'judged', reward: 1, exit_status: 'time_limit' });
  });

  test.each([
    ['writes no reward', 'true', /reward\.json nor reward\.txt/],
    ['writes NaN', 'echo nan >/logs/verifier/reward.txt', /not a finite number/],
    ['writes an empty file', ': >/logs/verifier/reward.txt', /is empty/],
    ['writes two rewards', `echo '{"a": 1, "b": 0}' >/logs/verifier/reward.json`, /--reward-key/],
  ])('a rollout fails if the verifier %s', async (_, line, why) => {
    const result = await attempted({ ...honest, instance: taskOf(`#!/bin/bash\n${line}\n`) });
    expect(result).toMatchObject({ outcome: 'failed', reward: null });
    expect(result).toMatchObject({
      failure: { class: 'tests_cannot_start', message: expect.stringMatching(why) },
    });
  });

  test('a rollout fails if the verifier times out after it wrote a reward', async () => {
    const late = '#!/bin/bash\necho 1 >/logs/verifier/reward.txt\nsleep 60\n';
    const verifier = { timeout: 2, env: {} };
    const result = await attempted({ ...honest, instance: taskOf(late, { verifier }) });
    expect(result).toMatchObject({ outcome: 'failed', failure: { class: 'evaluation_timeout' } });
  });

  const losses = (cases: Readonly<Record<string, string>>): void => {
    let rollouts: Rollouts;
    beforeAll(async () => {
      const agents = Object.values(cases).map((code) => [guarded(code), 'true']);
      rollouts = await openRollouts(machine, { agents, instance: taskOf() });
    });
    afterAll(() => rollouts[Symbol.asyncDispose]());
    test.concurrent.each(Object.keys(cases).map((title, at) => [title, at] as const))(
      '%s: reward 0',
      async (_title, at) => {
        await rollouts.attempt(at);
        const result = await rollouts.resultOf(at);
        expect(result ?? { journal: await rollouts.journal(at) }).toMatchObject({
          ...{ outcome: 'judged', reward: 0, failure: null, attempt: 1 },
        });
      },
    );
  };
  describe('an agent that tries to get an undeserved reward', () => losses(HARBOR_WINS));
  describe('an agent that tries to avoid a verdict', () => losses(HARBOR_VOIDS));
});
