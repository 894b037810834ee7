/**
 * A worker that dies or stops between any two commands of any duty: after the rounds of the next worker the farm has the same state as
 * without the fault, even if the first worker writes its remaining commands later.
 */
import { newId } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { allDuties } from '../../src/maintenance/duties.ts';
import { DEBTS, type Debt, stateOf } from './debts.ts';
import { open, openScene, redisUrl, runDuties } from './farm.ts';
import { startLeash } from './leash.ts';

type Fate = 'killed' | 'stopped';

/** @returns the state at the end, and the number of commands of the first worker's duty */
async function play(debt: Debt, commands: number, fate: Fate): Promise<{ state: unknown; passed: number }> {
  const prefix = `k-${newId()}`;
  const at = await openScene(prefix);
  await using leash = await startLeash(redisUrl());
  const first = await openScene(prefix, leash.url);
  const dispose = async (): Promise<void> => void (await first.farm[Symbol.asyncDispose]());
  const meanwhile = await debt.arrange(at, prefix);
  await first.farm.queue().waitUntilReady();

  leash.after(commands);
  const duty = allDuties().find(({ name }) => name === debt.duty);
  if (!duty) throw new Error(`no duty is called ${debt.duty}`);
  const running = duty.run(first.deps, open);
  const dying = running.catch(() => undefined);
  await Promise.race([running, leash.tight]);
  const passed = leash.passed();
  if (fate === 'killed') {
    leash.cut();
    await dispose();
    await dying;
  }
  await runDuties(at);
  await meanwhile?.();
  if (fate === 'stopped') {
    leash.release();
    await running;
    await dispose();
  }
  await runDuties(at);
  const state = await stateOf(at);
  await at.farm[Symbol.asyncDispose]();
  return { state, passed };
}

/** All cuts in `npm run ci:full`; otherwise every third, killed and delayed in turn. */
const EVERY = process.env.SWEFARM_TEST_EVERY_CUT === '1' ? 1 : 3;
/** Simulations in parallel, each in a farm of its own. */
const AT_ONCE = 8;

test('every duty is tested', () => {
  expect(DEBTS.map(({ duty }) => duty).sort()).toEqual(
    allDuties()
      .map(({ name }) => name)
      .sort(),
  );
});

test.each(DEBTS)('$duty: killed, or delayed, after each of its commands', async (debt) => {
  const whole = await play(debt, Number.POSITIVE_INFINITY, 'killed');
  const plays = Array.from({ length: whole.passed }, (_, commands) => [
    { commands, fate: 'killed' as const },
    { commands, fate: 'stopped' as const },
  ]).flat();
  const played = plays.filter((_, at) => at % EVERY === 0);
  expect(played.length).toBeGreaterThan(0);
  for (let at = 0; at < played.length; at += AT_ONCE) {
    const some = played.slice(at, at + AT_ONCE).map(async ({ commands, fate }) => {
      const { state } = await play(debt, commands, fate);
      expect(state, `${fate} after ${commands} commands`).toEqual(whole.state);
    });
    await Promise.all(some);
  }
});
