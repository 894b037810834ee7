/** When a run pauses for answers that nobody reads: those that end first are no sample of it. */
import type { Claim } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { pauseFailingRuns } from '../../src/maintenance/pauseruns.ts';
import { aWorker, scene, settleBy, startRun } from './farm.ts';

test('the first to end of a healthy run are those that miss the form: what is in work speaks for the others', async () => {
  const at = await scene();
  await aWorker(at, 'alive');
  const { run, ids } = await startRun(at, { group_size: 60 });
  const claims = new Map<string, Claim>();
  for (const id of ids) claims.set(id, await at.farm.journal.claim(id, { worker: 'alive', node: 'n' }));
  const miss = async (from: number, to: number): Promise<void> => {
    for (const id of ids.slice(from, to))
      await settleBy(at, run, id, { judged: 0, unread: 3 }, claims.get(id));
    await pauseFailingRuns.run(at.deps, new AbortController().signal);
  };
  const reach = async (id: string, turns: number): Promise<void> => {
    const rest = { attempt: 1, worker: 'alive', node: 'n', stage: 'agent', claimed_at: 1, at: 1 };
    await at.farm.live.mark({ ...rest, rollout_id: id, turns });
  };
  const reason = async () => (await at.farm.groups.paused(run.run_id))?.reason ?? null;
  await miss(0, 29);
  expect(await reason()).toBeNull();
  // Half have ended so; one of the others goes on where no rollout whose answers cannot be read does.
  await reach(ids[40] ?? '', 30);
  await miss(29, 30);
  expect(await reason()).toBeNull();
  // All others may yet end so.
  await reach(ids[40] ?? '', 3);
  await miss(30, 31);
  expect(await reason()).toMatch(/^the tool calls of 93 of 93 answers could not be read/);
});
