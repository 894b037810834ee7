/** Tests an array that requeues itself each minute, beside a job that a more urgent job preempts: each rollout has one result. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { words } from '../../src/launchers/commands.ts';
import { startSlurmFarm, wrongResults } from './slurmfarm.ts';

const ROLLOUTS = 48;

test('an array at its time limit is requeued by task; a preempted job runs after the other', async () => {
  await using farm = await startSlurmFarm(3, ['SWEFARM_SLURM_AGAIN=1', 'SWEFARM_SLURM_GATEWAY=1']);
  const { cluster } = farm;
  const preempted = await farm.sbatch('--time=20');
  const ready = (job: string, start: number) =>
    farm.until(`start ${start} of ${job}`, async () =>
      new RegExp(`"worker":"${job}\\.${start}-.*"msg":"ready"`).test(await farm.log(job)),
    );
  await ready(preempted, 0);
  await farm.sbatch('--array=0-1', '--time=1', '--signal=B:TERM@40');
  // Each task of an array also has its own job id.
  const listed = await cluster.asUser('squeue', ['--noheader', '--array', '--format=%A %K %N']);
  const rows = listed.split('\n').map((line) => line.trim().split(/\s+/));
  const tasks = rows.filter(([, index]) => index === '0' || index === '1').map(([id = '']) => id);
  expect(tasks).toHaveLength(2);
  for (const task of tasks) await ready(task, 0);

  await farm.until('three workers at /sd', async () => (await workersAt(farm.folder)).length === 3);
  for (const target of await workersAt(farm.folder)) {
    const metrics = await fetch(`http://${target}/metrics`).then((answer) => answer.text());
    expect(metrics).toContain('swefarm_');
  }

  const collect = await farm.start(ROLLOUTS);
  await farm.until('some results', async () => (await farm.results()).length >= 4);
  const node = (await cluster.jobs()).find(({ id }) => id === preempted)?.nodes ?? '';
  const urgent = words`--parsable --partition=urgent --exclusive --nodelist=${node} --output=/dev/null`;
  await cluster.asUser('sbatch', [...urgent, '--wrap', 'sleep 10'], '/tmp');
  for (const job of [preempted, ...tasks]) await ready(job, 1);
  for (const task of tasks) expect(await farm.log(task)).toContain('out of time: queued again');
  expect(await farm.log(preempted)).not.toContain('out of time');

  expect(await collect.exit, collect.stderr()).toBe(0);
  expect(wrongResults(await farm.results(), ROLLOUTS)).toEqual([]);

  // A cancelled job must not be requeued.
  await cluster.asUser('scancel', ['--user=nobody']);
  await farm.expectNothingLeft();
});

/** Returns the workers at the gateway's /sd; none while there is no address of a gateway. */
async function workersAt(folder: string): Promise<string[]> {
  const gateway = join(folder, 'shared/gateway');
  const text = await readFile(join(gateway, 'address.json'), 'utf8').catch(() => null);
  if (text === null) return [];
  const token = (await readFile(join(gateway, 'gateway.token'), 'utf8')).trim();
  const answer = await fetch(`${JSON.parse(text).url}/sd`, { headers: { authorization: `Bearer ${token}` } });
  expect(answer.status).toBe(200);
  const groups = (await answer.json()) as { targets: string[]; labels: { role: string } }[];
  return groups.filter(({ labels }) => labels.role === 'worker').flatMap(({ targets }) => targets);
}
