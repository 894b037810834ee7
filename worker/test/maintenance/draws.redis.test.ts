import { bareInstance, bareRun } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { allDuties } from '../../src/maintenance/duties.ts';
import { endBy, open, scene } from './farm.ts';

test('maintenance queues the rollouts of a group that a commit drew', async () => {
  const at = await scene();
  const { farm } = at;
  const names = ['a', 'b'];
  const until = {
    groups: 1,
    keep: 'mixed',
    max: 2,
    ahead: 0,
    seed: 1,
    curriculum: null,
    strata: {},
  } as const;
  const dataset = { path: 'rows', sha256: 'ab', instances: 2 };
  const run = bareRun({ group_size: 2, dataset, until });
  const draws = names.map((instance_id) => ({
    ...{ instance_id, image: `image-${instance_id}`, sequence: 0, stratum: 'all' as const, chance: 0.5 },
  }));
  await farm.runs.storeDraws(run, draws);
  await farm.runs.create(
    run,
    names.map((instance_id) => bareInstance({ instance_id })),
  );
  await farm.jobs.enqueue(run, await farm.groups.rollouts(run.run_id));
  for (const index of [0, 1]) await endBy(at, run, `${run.run_id}.a.${index}`, { judged: 0 });

  const drawn = [0, 1].map((index) => `${run.run_id}.b.${index}`);
  expect(await farm.jobs.missing(drawn)).toEqual(drawn);
  await allDuties()
    .find(({ name }) => name === 'queue-refills')
    ?.run(at.deps, open);
  expect(await farm.jobs.missing(drawn)).toEqual([]);
  const job = await farm.queue().getJob(drawn[0] ?? '');
  expect(job?.data).toMatchObject({ instance_id: 'b', image: 'image-b' });
});
