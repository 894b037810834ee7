/** No fault of infrastructure gets a verdict: each is retried as its class allows, and then reported by that class. */

import type { Runtime } from '@swefarm/sandbox';
import { FAILURES, type Result } from '@swefarm/shared';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FAULTS, type Fault, STORE_REFUSES } from './faults.ts';
import { RUNTIMES } from './runtimes.ts';
import { type Machine, openMachine, openRollouts } from './scene.ts';

const MOST_ATTEMPTS = 8;

describe.each(RUNTIMES)('on %s', (name) => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await openMachine(name);
  });
  afterAll(() => machine[Symbol.asyncDispose]());

  /** Attempts until there is a result. `strikes`: the number of first attempts with the fault; absent: all. */
  async function attempted(fault: Fault, strikes = MOST_ATTEMPTS) {
    const { patch, command = 'true', policy, given, threads, store } = fault;
    let attempts = 0;
    const struck = fault.runtime?.(machine.runtime);
    const runtime: Runtime = new Proxy(machine.runtime, {
      get: (whole, key) => Reflect.get((attempts < strikes && struck) || whole, key),
    });
    await using rollouts = await openRollouts(machine, {
      ...(patch === undefined ? { agents: [[command]] } : { patches: [patch] }),
      ...(policy ? { faults: [policy] } : {}),
      ...(store ? { store: STORE_REFUSES } : {}),
      ...given,
      machine: {
        ...(struck ? { runtime } : {}),
        ...(threads ? { threads: threads(machine.threads) } : {}),
        ...given?.machine,
      },
    });
    let result: Result | null = null;
    for (; result === null && attempts < MOST_ATTEMPTS; attempts++) {
      await rollouts.attempt(0);
      result = await rollouts.resultOf(0);
    }
    return { ...result, journal: await rollouts.journal(0) };
  }

  test.concurrent.each(FAULTS.map((fault) => [fault.name, fault.class, fault] as const))(
    '%s: %s, no reward',
    async (_name, failureClass, fault) => {
      expect(await attempted(fault)).toMatchObject({
        ...{ outcome: 'failed', reward: null, resolved: null },
        failure: { class: failureClass, attempts: FAILURES[failureClass].budget },
      });
    },
  );

  const passing = FAULTS.filter((fault) => fault.runtime && FAILURES[fault.class].budget > 1);
  test.concurrent.each(passing.map((fault) => [fault.name, fault] as const))(
    '%s once: reward 0 at the second attempt',
    async (_name, fault) => {
      expect(await attempted(fault, 1)).toMatchObject({ outcome: 'judged', reward: 0, attempt: 2 });
    },
  );
});
