/** What code in a sandbox does to avoid a verdict is one: reward 0 at the first attempt, on each runtime. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AGENT_VOIDS } from './agentvoids.ts';
import { ANSWER_VOIDS } from './answervoids.ts';
import { EVALUATION_VOIDS } from './evaluationvoids.ts';
import { planOf, REPORT_VOIDS } from './reportvoids.ts';
import { RUNTIMES } from './runtimes.ts';
import { type Machine, openMachine, openRollouts, patchOf, type Rollouts } from './scene.ts';
import { guarded, type Void } from './voids.ts';

const LIMITS = [...new Set(EVALUATION_VOIDS.map(({ testsLimit }) => testsLimit))];
const withLimit = (limit: number | undefined): Void[] =>
  EVALUATION_VOIDS.filter(({ testsLimit }) => testsLimit === limit);

describe.each(RUNTIMES)('on %s', (name) => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await openMachine(name);
  });
  afterAll(() => machine[Symbol.asyncDispose]());

  const LOSS = { outcome: 'judged', reward: 0, failure: null, attempt: 1 };
  const rows = (cases: readonly Pick<Void, 'name'>[], open: () => Promise<Rollouts>): void => {
    let rollouts: Rollouts;
    beforeAll(async () => {
      rollouts = await open();
    });
    afterAll(() => rollouts[Symbol.asyncDispose]());
    test.concurrent.each(cases.map((one, at) => [one.name, at] as const))(
      '%s: reward 0',
      async (_name, at) => {
        await rollouts.attempt(at);
        const result = await rollouts.resultOf(at);
        expect(result ?? { journal: await rollouts.journal(at) }).toMatchObject(LOSS);
      },
    );
  };

  describe('an agent', () =>
    rows(AGENT_VOIDS, () =>
      openRollouts(machine, {
        agents: AGENT_VOIDS.map(({ code }) => [code].flat().map((line) => guarded(line))),
      }),
    ));
  describe('an answer', () =>
    rows(ANSWER_VOIDS, () =>
      openRollouts(machine, { turns: ANSWER_VOIDS.map(({ turn }) => [turn, { submit: true }]) }),
    ));
  describe.each(['junit', 'reward'] as const)('a report of %s', (from) =>
    rows(REPORT_VOIDS, () =>
      openRollouts(machine, {
        patches: REPORT_VOIDS.map(({ code }) => patchOf(guarded(String(code)))),
        instance: { plan: planOf(from) },
      }),
    ),
  );
  describe.each(LIMITS)('a patch, with %s seconds', (limit) =>
    rows(withLimit(limit), () =>
      openRollouts(machine, {
        patches: withLimit(limit).map(({ code }) => patchOf(guarded(String(code)))),
        ...(limit === undefined ? {} : { testsLimit: limit }),
      }),
    ),
  );
});
