/** Tests separate verifiers of Harbor tasks on each runtime. No agent gets an undeserved reward or avoids a verdict. */
import { RolloutFailure } from '@swefarm/shared';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RUNTIMES } from './runtimes.ts';
import { type Machine, openMachine, openRollouts, type Rollouts, type RunGiven, replacing } from './scene.ts';
import { SEPARATE_VOIDS, SEPARATE_WINS, separateTask } from './separatetasks.ts';
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
    const result = await rollouts.resultOf(0);
    const content = await rollouts.farm.artifacts.read(result?.artifact ?? null);
    return { ...(result ?? { journal: await rollouts.journal(0) }), collected: content?.collected };
  };

  test('the verifier gets the artifacts, and no program that the agent replaced', async () => {
    const code = `echo 42 >answer.txt; mkdir -p out; echo a >out/a; ${SEPARATE_WINS['programs of the verifier are replaced']}`;
    const result = await attempted({ agents: [[guarded(code)]], instance: separateTask(machine.image) });
    expect(result).toMatchObject({ outcome: 'judged', reward: 1, facts: { trust: 'clean' } });
    const stored = result.collected?.map(({ source, status, files }) => [source, status, files.length]);
    expect(stored).toEqual([
      ['/logs/artifacts', 'ok', 1],
      ['/testbed/answer.txt', 'ok', 1],
      ['/testbed/out', 'ok', 1],
    ]);
  });

  test('an agent that reaches its time limit is graded', async () => {
    const agents = [['echo 42 >answer.txt', 'sleep 30', 'sleep 30', 'sleep 30']];
    const instance = separateTask(machine.image, undefined, { agent: { timeout: 6 } });
    const result = await attempted({ agents, instance });
    expect(result).toMatchObject({ outcome: 'judged', reward: 1, exit_status: 'time_limit' });
  });

  const needsState = '[ -e out/state ] || exit 1\necho 1 >/logs/verifier/reward.txt\n';
  test('a missing reward is 0 if the solution has a reward', async () => {
    const instance = separateTask(machine.image, `#!/bin/bash\n${needsState}`);
    expect(await attempted({ agents: [['true']], instance })).toMatchObject({
      ...{ outcome: 'judged', reward: 0, attempt: 1 },
    });
  });

  test.each([
    ['writes no reward', 'true', { class: 'tests_cannot_start' }],
    ['writes NaN', 'echo nan >/logs/verifier/reward.txt', { class: 'tests_cannot_start' }],
    ['is late', 'echo 1 >/logs/verifier/reward.txt\nsleep 60', { class: 'evaluation_timeout' }],
  ])('a rollout fails if the verifier always %s', async (_, line, failure) => {
    const instance = separateTask(machine.image, `#!/bin/bash\n${line}\n`);
    const limited = { agents: [['echo 42 >answer.txt']], testsLimit: 2, instance };
    expect(await attempted(limited)).toMatchObject({ outcome: 'failed', reward: null, failure });
  });

  test('stored work is graded without the agent after a failure of the verifier', async () => {
    let starts = 0;
    const runtime = replacing(machine.runtime, {
      start: (spec, signal) => {
        if (spec.role === 'evaluation' && starts++ === 0)
          throw new RolloutFailure('sandbox_start', 'the engine refuses the container');
        return machine.runtime.start(spec, signal);
      },
    });
    await using rollouts = await openRollouts(machine, {
      ...{ agents: [['echo 42 >answer.txt']], machine: { runtime } },
      instance: separateTask(machine.image),
    });
    await rollouts.attempt(0);
    expect(await rollouts.resultOf(0)).toBeNull();
    await rollouts.attempt(0);
    expect(await rollouts.resultOf(0)).toMatchObject({ reward: 1, attempt: 2, turns: 2 });
    expect(starts).toBe(2);
  });

  const losses = (cases: Readonly<Record<string, string>>): void => {
    let rollouts: Rollouts;
    beforeAll(async () => {
      const agents = Object.values(cases).map((code) => [guarded(code), 'true']);
      rollouts = await openRollouts(machine, { agents, instance: separateTask(machine.image) });
    });
    afterAll(() => rollouts[Symbol.asyncDispose]());
    test.concurrent.each(Object.keys(cases).map((title, at) => [title, at] as const))(
      '%s: reward 0',
      async (_title, at) => {
        await rollouts.attempt(at);
        const result = await rollouts.resultOf(at);
        expect(result ?? { journal: await rollouts.journal(at) }).toMatchObject({
          ...{ outcome: 'judged', reward: 0, failure: null, attempt: 1, facts: { trust: 'clean' } },
        });
      },
    );
  };
  describe('an agent that tries to get an undeserved reward', () => losses(SEPARATE_WINS));
  describe('an agent that tries to avoid a verdict', () => losses(SEPARATE_VOIDS));
});
