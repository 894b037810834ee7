/**
 * Tests the SLURM scripts as SLURM would start them: a job that cannot work ends early with one line that has the remedy, and a job
 * that is out of time is requeued.
 */
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { run } from '../../src/launchers/run.ts';
import { SLURM_USER } from '../../src/launchers/slurm.ts';
import { listen } from '../../src/listen.ts';
import { temporaryFolder } from '../temporaryfolder.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

let folder = '';
let bundle = '';
let programs = '';
beforeAll(async () => {
  folder = temporaryFolder('slurm-errors');
  await chmod(folder, 0o777);
  bundle = join(folder, 'bundle');
  programs = join(folder, 'programs');
  await mkdir(programs);
  // Stand-ins for programs that fail: there is neither a cluster nor a working Apptainer.
  for (const name of ['scontrol', 'apptainer', 'singularity']) {
    await writeFile(join(programs, name), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  }
  // Stands in for srun with workers that run until the job ends them. With OUT_OF_TIME, it sends TERM to the job first.
  const step = `#!/bin/sh\n[ -z "$OUT_OF_TIME" ] || kill -TERM "$PPID"\nuntil grep -q ' stop ' "$SWEFARM_SLURM_DIR/jobs/7"; do sleep 0.2; done\n`;
  await writeFile(join(programs, 'srun'), step, { mode: 0o755 });
  await run('npm', ['run', 'bundle', '--', '--out', bundle], { cwd: ROOT });
});

type Ended = { code: number; lines: string[] };

/** Runs a script as the plain user, with only the variables of a job and `env`. */
async function ended(
  script: string,
  env: Record<string, string>,
  args: readonly string[] = [],
): Promise<Ended> {
  const job = { SLURM_JOB_ID: '7', SLURMD_NODENAME: 'n1', SLURM_CPUS_ON_NODE: '2', SLURM_CONF: '/none' };
  const dirs = { SWEFARM_SLURM_DIR: join(folder, 'farm'), SWEFARM_SLURM_LOCAL: join(folder, 'local') };
  // A script that fails must end within this time.
  const limits = { timeout: 60_000, killSignal: 'SIGKILL' as const };
  const bare = { PATH: `${programs}:/usr/bin:/bin`, HOME: '/none', SWEFARM_SLURM_HOST: '127.0.0.1' };
  const all = Object.entries({ ...bare, ...job, ...dirs, SWEFARM_SLURM_HOME: bundle, ...env });
  const given = Object.fromEntries(all.filter(([, value]) => value !== ''));
  const { code, stderr } = await run('bash', [script, ...args], {
    env: given,
    cwd: folder,
    ...limits,
    ...SLURM_USER,
  }).then(
    (output) => ({ code: 0, stderr: output.stderr }),
    (error: { code: number; stderr: string }) => error,
  );
  return { code, lines: stderr.trim().split('\n') };
}
const job = (env: Record<string, string>) => ended(join(bundle, 'slurm/workers.sh'), env);
const node = (env: Record<string, string>) => ended(join(bundle, 'slurm/node.sh'), env, ['0']);
/** Matches a script that prints one matching line and exits with 12. */
const refusal = (line: RegExp) => ({ code: 12, lines: [expect.stringMatching(line)] });

test('outside of a job', async () => {
  const line = /not inside a SLURM job: sbatch slurm\/workers\.sh/;
  expect(await job({ SLURM_JOB_ID: '' })).toEqual(refusal(line));
});

test('without a bundle', async () => {
  const alone = join(folder, 'alone.sh');
  await cp(join(bundle, 'slurm/workers.sh'), alone);
  const line = /no bundle found: make one with npm run bundle/;
  expect(await ended(alone, { SWEFARM_SLURM_HOME: '' })).toEqual(refusal(line));
});

test('without a shared folder', async () => {
  const line = /\/proc\/farm cannot be written from n1: set SWEFARM_SLURM_DIR/;
  expect(await job({ SWEFARM_SLURM_DIR: '/proc/farm' })).toEqual(refusal(line));
  // The first node has written to its folder, but this node sees another folder at the path.
  const elsewhere = /elsewhere is not the folder that the first node sees: set/;
  expect(await node({ SWEFARM_SLURM_DIR: join(folder, 'elsewhere') })).toEqual(refusal(elsewhere));
});

test('with a Redis that does not answer', async () => {
  const line = /Redis does not answer at redis:\/\/127.0.0.1:1: .* is it running/;
  expect(await job({ REDIS_URL: 'redis://127.0.0.1:1' })).toEqual(refusal(line));
});

test('with a port that is taken', async () => {
  await using taken = createServer();
  const port = await listen(taken);
  const redis = await job({ SWEFARM_SLURM_PORT: String(port) });
  expect(redis).toEqual(refusal(/port \d+ on 127.0.0.1 is taken: give another --port/));
  // The port of the gateway is taken: the job does not start a farm that callers cannot reach.
  const gateway = await job({ SWEFARM_SLURM_GATEWAY: '1', SWEFARM_SLURM_GATEWAY_PORT: String(port) });
  expect(gateway).toEqual(refusal(/127\.0\.0\.1:\d+ is taken; choose another --port/));
});

test('with too little memory, and without Apptainer', async () => {
  const farm = join(folder, 'seen');
  await mkdir(join(farm, 'jobs'), { recursive: true });
  await writeFile(join(farm, 'jobs/7'), '0 run 1\n');
  const little = await node({ SWEFARM_SLURM_DIR: farm, SLURM_MEM_PER_NODE: '1500' });
  expect(little).toEqual(refusal(/too little memory: the job has 1500 MiB here, .* set --mem/));
  const memory = { SWEFARM_SLURM_DIR: farm, SLURM_MEM_PER_NODE: '6000' };
  const line = /there is no apptainer or singularity, and only root can install it: ask for it/;
  expect(await node({ ...memory, SWEFARM_RUNTIME: 'apptainer' })).toEqual(refusal(line));
});

test('with unreadable settings, an unusable local disk, or no leader', async () => {
  const of = async (env: Record<string, string>, line: RegExp) =>
    expect(await job(env)).toEqual(refusal(line));
  await of(
    { SWEFARM_SLURM_CONFIG: '/none/farm.env' },
    /settings file \/none\/farm\.env cannot be read from .*: put it on the shared file system/,
  );
  await of(
    { SWEFARM_SLURM_LOCAL: '/proc' },
    /\/proc\/swefarm-\d+ on n1 cannot be made.*set SWEFARM_SLURM_LOCAL/,
  );
  const alone = {
    SWEFARM_SLURM_LEAD: '0',
    SWEFARM_SLURM_WAIT: '1',
    SWEFARM_SLURM_DIR: join(folder, 'alone'),
  };
  await of(alone, /no Redis leads the farm in .*\/alone after 1 s: is the first job running\? \(squeue/);
});

test('a task of an array that is out of time queues itself again, and no other task', async () => {
  const cluster = join(folder, 'cluster');
  await mkdir(cluster);
  await chmod(cluster, 0o777);
  // For the id of an array, SLURM would list all of its tasks.
  const squeue = '#!/bin/sh\necho RUNNING\n[ "$*" = "-h -j 5_3 -o %T" ] || echo RUNNING\n';
  await writeFile(join(cluster, 'squeue'), squeue, { mode: 0o755 });
  await writeFile(join(cluster, 'scontrol'), `#!/bin/sh\necho "$*" >>${cluster}/said\n`, { mode: 0o755 });
  const task = { SLURM_ARRAY_JOB_ID: '5', SLURM_ARRAY_TASK_ID: '3' };
  const again = { SWEFARM_SLURM_AGAIN: '1', OUT_OF_TIME: '1', PATH: `${cluster}:${programs}:/usr/bin:/bin` };
  expect(await job({ ...task, ...again })).toEqual({
    code: 0,
    lines: [expect.stringContaining('out of time: queued again')],
  });
  expect(await readFile(join(cluster, 'said'), 'utf8')).toBe('requeue 5_3\n');
});
