/** Starts a farm on a real SLURM of one machine: cluster, bundle, images that the plain user owns, a slow scripted policy. */

import { chmod, chown, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { sleep } from '@swefarm/shared';
import { expect } from 'vitest';
import { type BuiltExamples, buildExamples } from '../../src/examples/build.ts';
import { buildSif } from '../../src/images/sif.ts';
import type { Started } from '../../src/launchers/commands.ts';
import { run } from '../../src/launchers/run.ts';
import { SLURM_USER, type SlurmCluster, startSlurm } from '../../src/launchers/slurm.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import type { ScriptInput } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { processesOf } from './leftovers.ts';
import { type Line, openScene } from './scene.ts';
import { EXAMPLE_ID, twentyTurns } from './scripts.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const PATIENCE_MS = 240_000;

export interface SlurmFarm extends AsyncDisposable {
  readonly cluster: SlurmCluster;
  readonly folder: string;
  /** Node-local folder of all nodes. */
  readonly local: string;
  /** Submits a job of workers and returns its id. */
  sbatch(...args: string[]): Promise<string>;
  /** Submits a job that trains beside its workers. @param command arguments of python3, which has the client and `POLICY_URL` */
  train(args: readonly string[], command: readonly string[]): Promise<string>;
  /** The instances. */
  readonly dataset: string;
  /** All that the job printed. */
  log(job: string): Promise<string>;
  /** Submits `rollouts` rollouts and starts to collect them. @param options additional flags of the submit */
  start(rollouts: number, options?: readonly string[]): Promise<Started>;
  results(): Promise<Line[]>;
  /** Waits for a condition; throws with `what` and the jobs' logs after four minutes. */
  until(what: string, condition: () => Promise<boolean>): Promise<void>;
  /** Returns the gateway's answer about its health; null when its address file is missing. */
  gateway(): Promise<string | null>;
  untilReady(job: string, workers?: number): Promise<void>;
  /** Waits for the end of all jobs; fails unless the farm has left nothing on the nodes. */
  expectNothingLeft(): Promise<void>;
}

/**
 * @param settings lines of the settings file that workers.sh reads, beside the folders
 * @param runtime apptainer runs a .sif file that is found by the instance's id
 */
export async function startSlurmFarm(
  nodes: number,
  settings: readonly string[] = [],
  runtime: 'rootfs' | 'apptainer' = 'rootfs',
  script: ScriptInput = twentyTurns(),
): Promise<SlurmFarm> {
  const scene = openScene({ SWEFARM_REDIS_PATIENCE_SECONDS: '180' });
  const { folder } = scene;
  await chmod(folder, 0o755);
  const home = join(folder, 'home');
  const shared = join(folder, 'shared');
  const local = join(folder, 'local');
  const images = join(folder, 'images');
  scene.env.SWEFARM_REDIS_URL = `file:${shared}/redis/address.json`;
  for (const path of [home, shared, local, images]) {
    await mkdir(path);
    await chown(path, SLURM_USER.uid, SLURM_USER.gid);
  }
  await using started = new AsyncDisposableStack();
  const bundle = join(folder, 'bundle');
  const [dataset] = await Promise.all([
    (runtime === 'apptainer' ? sifExample : ownedExample)(folder),
    run('npm', ['run', 'bundle', '--', '--out', bundle], { cwd: ROOT }),
  ]);
  const policy = started.use(await startScriptedPolicy({ script, delay: { fixed_ms: 60 } }));
  const cluster = started.use(await startSlurm(join(folder, 'slurm'), nodes));
  const file = join(folder, 'farm.env');
  const lines = [
    `SWEFARM_SLURM_DIR=${shared}`,
    `SWEFARM_SLURM_LOCAL=${local}`,
    `SWEFARM_RUNTIME=${runtime}`,
    // All nodes are on one machine, so they share the unpacked images.
    ...(runtime === 'apptainer'
      ? [`SWEFARM_APPTAINER_IMAGES=${folder}/{instance_id}.sif`, `SWEFARM_IMAGES_DIR=${images}`]
      : []),
    'SWEFARM_CONCURRENCY=2',
    'SWEFARM_DRAIN_GRACE_SECONDS=10',
    ...settings,
  ];
  await writeFile(file, `${lines.join('\n')}\n`);
  const output = join(folder, 'out.jsonl');
  const submit = (script: string, args: readonly string[], words: readonly string[]) =>
    cluster.asUser(
      'sbatch',
      ['--parsable', `--output=${home}/%j.log`, ...args, join(bundle, 'slurm', script), file, ...words],
      home,
    );
  const farm: Omit<SlurmFarm, typeof Symbol.asyncDispose> = {
    cluster,
    folder,
    local,
    dataset,
    sbatch: (...args) => submit('workers.sh', args, []),
    async train(args, command) {
      const client = join(folder, 'client');
      await cp(join(ROOT, 'producer/python/swefarm'), join(client, 'swefarm'), { recursive: true });
      return await submit('train.sh', args, [
        'env',
        `PYTHONPATH=${client}`,
        `POLICY_URL=${policy.url}`,
        'python3',
        ...command,
      ]);
    },
    log: (job) => readFile(join(home, `${job}.log`), 'utf8').catch(() => ''),
    async start(rollouts, options = []) {
      const run = await scene.submit`--dataset ${dataset} --agent mini --group-size ${rollouts}
        --policy-url ${policy.url} --model scripted --require-tokens ${options}`;
      return scene.start`collect ${run} --output ${output}`;
    },
    results: () => readLines<Line>(output).catch(() => []),
    async until(what, condition) {
      const end = Date.now() + PATIENCE_MS;
      while (!(await condition())) {
        if (Date.now() > end)
          throw new Error(`not within ${PATIENCE_MS / 1000} s: ${what}\n${await logs(home)}`);
        await sleep(200);
      }
    },
    async gateway() {
      const text = await readFile(join(shared, 'gateway/address.json'), 'utf8').catch(() => null);
      if (text === null) return null;
      return await fetch(`${JSON.parse(text).url}/healthz`).then((answer) => answer.text());
    },
    untilReady: (job, workers = 1) =>
      farm.until(`${workers} workers of ${job}`, async () => {
        const ready = (await farm.log(job)).match(/"msg":"ready"/g) ?? [];
        return ready.length >= workers;
      }),
    async expectNothingLeft() {
      await farm.until('no jobs', async () => (await cluster.jobs()).length === 0);
      const leftovers = async (): Promise<string[]> => {
        const mounts = (await readFile('/proc/mounts', 'utf8')).split('\n');
        const { stdout } = await run('find', [local, '-mindepth', '1', '-maxdepth', '3']);
        const processes = [...(await processesOf(bundle)), ...(await processesOf(local))];
        const mounted = mounts.filter((line) => line.includes(local));
        return [...processes, ...mounted, ...stdout.split('\n').filter(Boolean)];
      };
      await expect.poll(leftovers, { timeout: 60_000, interval: 200 }).toEqual([]);
    },
  };
  const resources = started.move();
  return { ...farm, [Symbol.asyncDispose]: () => resources[Symbol.asyncDispose]() };
}

function treeOf({ examples: [example] }: BuiltExamples): string {
  if (!example) throw new Error('no example could be built');
  return example.tree.path;
}

/** Writes a dataset of one example whose tree is a copy that belongs to the plain user. */
async function ownedExample(folder: string): Promise<string> {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', host: true, out: folder });
  const from = treeOf(built);
  const to = join(folder, 'image', basename(from));
  await mkdir(dirname(to));
  await run('cp', ['-a', from, to]);
  await cp(`${from}.json`, `${to}.json`).catch(() => undefined);
  await run('chown', ['-R', `${SLURM_USER.uid}:${SLURM_USER.gid}`, dirname(to)]);
  const rows = (await readFile(built.files.rootfs, 'utf8')).replaceAll(from, to);
  const file = join(folder, 'owned.jsonl');
  await writeFile(file, rows);
  return file;
}

/** Writes a dataset of one example with an image name, and its .sif file beside it. */
async function sifExample(folder: string): Promise<string> {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  await buildSif(treeOf(built), join(folder, `${EXAMPLE_ID}.sif`));
  const rows = built.rows.map((row) => ({ ...row, image: `swefarm/example.${EXAMPLE_ID}` }));
  return await writeLines(join(folder, 'named.jsonl'), rows);
}

const logs = async (home: string): Promise<string> =>
  (await run('bash', ['-c', `tail -n 30 "$1"/*.log | cut -c1-400`, 'sh', home])).stdout;

/** Returns the problems: each rollout must have one line, and only even indices resolve. */
export function wrongResults(lines: readonly Line[], rollouts: number): string[] {
  const ids = new Set(lines.map((line) => line.rollout_id));
  const count =
    ids.size === rollouts && lines.length === rollouts ? [] : [`${lines.length} lines, ${ids.size} ids`];
  const wrong = lines.filter(
    (line) => line.outcome !== 'judged' || line.resolved !== (line.rollout_index % 2 === 0),
  );
  return [...count, ...wrong.map((line) => JSON.stringify(line).slice(0, 300))];
}
