/** Tests the farm on a real SLURM as a user without root: it survives faults of nodes and jobs, and leaves nothing behind. */
import { expect, test } from 'vitest';
import { startSlurmFarm, wrongResults } from './slurmfarm.ts';

const ROLLOUTS = 10;

test('sbatch -N 2: a lost daemon and a requeue cost no result; after scancel nothing is left', async () => {
  await using farm = await startSlurmFarm(2, ['SWEFARM_SLURM_GATEWAY=1']);
  const { cluster } = farm;
  const job = await farm.sbatch('-N', '2');
  await farm.untilReady(job, 2);
  const collect = await farm.start(ROLLOUTS);
  await farm.until('some results', async () => (await farm.results()).length >= 2);

  // SLURM cannot reach n2, so its worker learns from the farm's shared folder that this start of the job is over.
  await cluster.killDaemon('n2');
  await cluster.asUser('scontrol', ['requeue', job]);
  await cluster.startDaemon('n2');
  expect(await collect.exit, collect.stderr()).toBe(0);
  const lines = await farm.results();
  expect(wrongResults(lines, ROLLOUTS)).toEqual([]);
  expect(lines.some((line) => line.worker.startsWith(`${job}.0-`))).toBe(true);
  expect(lines.some((line) => line.worker.startsWith(`${job}.1-`))).toBe(true);

  await farm.until('a gateway', async () => (await farm.gateway())?.includes('"status":"ok"') === true);
  await cluster.asUser('scancel', [job]);
  await farm.expectNothingLeft();
  expect(await farm.gateway()).toBeNull();
});
