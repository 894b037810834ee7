/** Code in a sandbox that tries to avoid a verdict gets one: reward 0 at the first attempt, on each runtime. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AGENT_VOIDS } from './agentvoids.ts';
import { ANSWER_VOIDS } from './answervoids.ts';
import { EVALUATION_VOIDS } from './evaluationvoids.ts';
import { planOf, REPORT_VOIDS } from './reportvoids.ts';
import { RUNTIMES } from './runtimes.ts';
import { type Machine, openMachine, openRollouts, patchOf, type Rollouts } from './scene.ts';
import { type Codes, guarded } from './voids.ts';

const patchesOf = (codes: Codes): string[] => Object.values(codes).map((code) => patchOf(guarded(code)));

describe.each(RUNTIMES)('on %s', (name) => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await openMachine(name);
  });
  afterAll(() => machine[Symbol.asyncDispose]());

  const LOSS = { outcome: 'judged', reward: 0, failure: null, attempt: 1 };
  const rows = (cases: object, open: () => Promise<Rollouts>): void => {
    let rollouts: Rollouts;
    beforeAll(async () => {
      rollouts = await open();
    });
    afterAll(() => rollouts[Symbol.asyncDispose]());
    test.concurrent.each(Object.keys(cases).map((name, at) => [name, at] as const))(
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
        agents: Object.values(AGENT_VOIDS).map((code) => [code].flat().map((line) => guarded(line))),
      }),
    ));
  describe('an answer', () =>
    rows(ANSWER_VOIDS, () =>
      openRollouts(machine, { turns: Object.values(ANSWER_VOIDS).map((turn) => [turn, { submit: true }]) }),
    ));
  describe.each(['junit', 'reward'] as const)('a report of %s', (from) =>
    rows(REPORT_VOIDS, () =>
      openRollouts(machine, {
        patches: patchesOf(REPORT_VOIDS),
        instance: { plan: planOf(from) },
      }),
    ),
  );
  describe.each(EVALUATION_VOIDS)('a patch, with %s seconds', (limit, codes) =>
    rows(codes, () =>
      openRollouts(machine, {
        patches: patchesOf(codes),
        ...(limit === undefined ? {} : { testsLimit: limit }),
      }),
    ),
  );
});
