/** The farm on a SLURM of four nodes, with all that happens to jobs there in the middle of 64 rollouts. */
import { expect, test } from 'vitest';
import { apptainerPresent } from './examples.ts';
import { startSlurmFarm, wrongResults } from './slurmfarm.ts';

const ROLLOUTS = 64;

test('four jobs: a node lost, the leader requeued, one cancelled, one out of time; each result once', async () => {
  const runtime = apptainerPresent() ? 'apptainer' : 'rootfs';
  if (runtime === 'rootfs')
    console.warn(
      '######## no Apptainer here (testkit/setup/setup.sh apptainer): SLURM is shown on rootfs instead',
    );
  await using farm = await startSlurmFarm(4, [], runtime);
  const { cluster } = farm;
  const leader = await farm.sbatch();
  await farm.until('a leader', async () => (await farm.log(leader)).includes('"msg":"ready"'));
  expect(await farm.log(leader)).toContain(`"runtime":"${runtime}"`);
  expect(await farm.log(leader)).toMatch(/"metrics":"[^"]+:\d+"/);
  const lost = await farm.sbatch();
  const cancelled = await farm.sbatch();
  const timed = await farm.sbatch('--time=1', '--signal=B:TERM@30');
  for (const job of [lost, cancelled, timed]) {
    await farm.until('all workers', async () => (await farm.log(job)).includes('"msg":"ready"'));
  }
  const nodeOf = async (job: string) => (await cluster.jobs()).find(({ id }) => id === job)?.nodes ?? '';
  const lostNode = await nodeOf(lost);
  const collect = await farm.start(ROLLOUTS);
  const results = (count: number) =>
    farm.until(`${count} results`, async () => (await farm.results()).length >= count);

  await results(4);
  // SLURM starts this job again elsewhere in a while; the copy that it lost sight of goes on until it learns so.
  await cluster.killDaemon(lostNode);
  await results(8);
  await cluster.asUser('scontrol', ['requeue', leader]);
  await results(16);
  await cluster.asUser('scancel', [cancelled]);
  await farm.until('the time limit', async () => (await nodeOf(timed)) === '');
  await farm.until('the lost job again', async () =>
    /"worker":"\d+\.1-.*"msg":"ready"/.test(await farm.log(lost)),
  );
  await cluster.startDaemon(lostNode);

  expect(await collect.exit, collect.stderr()).toBe(0);
  const lines = await farm.results();
  expect(wrongResults(lines, ROLLOUTS)).toEqual([]);
  expect(await farm.log(timed)).toContain('draining: no new rollouts');

  await cluster.asUser('scancel', ['--user=nobody']);
  await farm.until('no jobs', async () => (await cluster.jobs()).length === 0);
  await farm.until('nothing left', async () => (await farm.leftovers()).length === 0);
  expect(await farm.leftovers()).toEqual([]);
});
