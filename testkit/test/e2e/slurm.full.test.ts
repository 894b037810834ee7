/** Tests the farm on a SLURM of four nodes, with faults of nodes and jobs during 64 rollouts. */
import { expect, test } from 'vitest';
import { apptainerPresent } from './examples.ts';
import { twentyTurns } from './scripts.ts';
import { startSlurmFarm, wrongResults } from './slurmfarm.ts';

const ROLLOUTS = 64;
const HOGS = 6;

const runtimeHere = (): 'apptainer' | 'rootfs' => {
  if (apptainerPresent()) return 'apptainer';
  console.warn(
    '######## no Apptainer here (testkit/setup/setup.sh apptainer): SLURM is shown on rootfs instead',
  );
  return 'rootfs';
};

test('four jobs, a lost node, a requeued leader, a cancel, a time limit: each result once', async () => {
  const runtime = runtimeHere();
  await using farm = await startSlurmFarm(4, [], runtime);
  const { cluster } = farm;
  const leader = await farm.sbatch();
  await farm.untilReady(leader);
  expect(await farm.log(leader)).toContain(`"runtime":"${runtime}"`);
  expect(await farm.log(leader)).toMatch(/"metrics":"[^"]+:\d+"/);
  const lost = await farm.sbatch();
  const cancelled = await farm.sbatch();
  const timed = await farm.sbatch('--time=1', '--signal=B:TERM@30');
  for (const job of [lost, cancelled, timed]) await farm.untilReady(job);
  const nodeOf = async (job: string) => (await cluster.jobs()).find(({ id }) => id === job)?.nodes ?? '';
  const lostNode = await nodeOf(lost);
  const collect = await farm.start(ROLLOUTS);
  const results = (count: number) =>
    farm.until(`${count} results`, async () => (await farm.results()).length >= count);

  await results(4);
  // SLURM starts this job again on another node later. The lost copy continues until it learns of the new start.
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
  await farm.expectNothingLeft();
});

/** Takes 200 MB a second, up to 4 GB. */
const HOG = `python3 -c 'import time; x = []; [(x.append(b"x" * 20_000_000), time.sleep(0.1)) for i in range(200)]'`;

test('the watchdog limits the memory of a sandbox before SLURM kills the step', async () => {
  // If the memory hog is not killed, the command removes the tree, so that the rollout cannot resolve.
  const script = twentyTurns(`${HOG}; [ $? = 137 ] || rm -rf /testbed/*`);
  await using farm = await startSlurmFarm(1, [], runtimeHere(), script);
  const { cluster } = farm;
  // Control: outside a sandbox, this SLURM kills the job for the same memory hog.
  const control = await cluster.asUser('sbatch', [
    ...['--parsable', '--mem=1000', `--output=${farm.folder}/home/%j.log`],
    ...['--wrap', `${HOG}; echo "all of it"`],
  ]);
  await farm.until('the end of the control', async () => (await cluster.jobs()).length === 0);
  expect(await farm.log(control)).toMatch(/exceeded memory limit/i);
  expect(await farm.log(control)).not.toContain('all of it');

  const job = await farm.sbatch('--mem=3000');
  await farm.untilReady(job);
  const collect = await farm.start(HOGS, ['--memory', '512m']);
  expect(await collect.exit, collect.stderr()).toBe(0);
  const lines = await farm.results();
  expect(wrongResults(lines, HOGS)).toEqual([]);
  expect(lines.map((line) => line.attempt)).toEqual(lines.map(() => 1));
  expect(await farm.log(job)).not.toMatch(/exceeded memory limit/i);
  await cluster.asUser('scancel', [job]);
  await farm.expectNothingLeft();
});
