/** Tests the farm on a real SLURM as a user without root: it survives faults of nodes and jobs, and leaves nothing behind. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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

/** Plays a step, and then one whose rollouts never end. */
const TRAINER = `
import json, os, signal, sys
from swefarm import Farm
signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))
rows = [json.loads(line) for line in open(sys.argv[1])]
run = Farm().run("slurm", model="scripted", policy_urls=[os.environ["POLICY_URL"]])
for group in run.groups(rows, n=2):
    print("rewards", [sample.reward for sample in group.samples], flush=True)
if len(sys.argv) > 2:
    print("second step", flush=True)
    for group in run.groups(rows, n=400): pass
`;

test('train.sh runs farm and trainer in one job, and stops the farm last', async () => {
  await using farm = await startSlurmFarm(2);
  const { cluster, folder, dataset } = farm;
  const trainer = join(folder, 'train.py');
  await writeFile(trainer, TRAINER);
  const codeOf = async (job: string) =>
    /ExitCode=(\d+):/.exec(await cluster.asUser('scontrol', ['show', 'job', job]))?.[1];

  const ended = await farm.train(['-N', '2'], [trainer, dataset]);
  await farm.expectNothingLeft();
  expect(await farm.log(ended)).toContain('rewards [1, 0]');
  expect(await codeOf(ended)).toBe('0');

  // The job uses the same folder of the farm, from which the address of the first job's gateway was removed.
  const preempted = await farm.train(['-N', '2'], [trainer, dataset, 'more']);
  await farm.until('the second step', async () => (await farm.log(preempted)).includes('second step'));
  await cluster.asUser('scancel', ['--batch', '--signal=TERM', preempted]);
  await farm.expectNothingLeft();
  expect(await codeOf(preempted)).toBe('42');
  expect(await farm.log(preempted)).toMatch(/"msg":"draining[^"]*"/);
});
