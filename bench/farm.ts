/** Starts the farm as processes (Redis, scripted policy, workers), and submits and reads rollouts as a producer. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newRunRecord, type Submission, submit } from '@swefarm/runs';
import {
  type Farm,
  freePort,
  type Instance,
  loadConfig,
  openFarm,
  type Result,
  type RuntimeName,
} from '@swefarm/shared';
import {
  type ScriptInput,
  type Started,
  startCommand,
  startRedis,
  type TestRedis,
  words,
} from '@swefarm/testkit';
import { SOCKET } from './engine.ts';

export type BenchEnvironment = AsyncDisposable & { redis: TestRedis; redisUrl: string; folder: string };

/** Starts a Redis, and makes a folder for all files of the farm. */
export async function openEnvironment(): Promise<BenchEnvironment> {
  const redis = await startRedis();
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-bench-'));
  const killRedis = (): void => void process.kill(redis.pid(), 'SIGKILL');
  process.once('exit', killRedis);
  return {
    redis,
    redisUrl: redis.url,
    folder,
    async [Symbol.asyncDispose]() {
      process.off('exit', killRedis);
      await redis[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export type Process = AsyncDisposable & { started: Started };

/** Returns a handle of a command, which ends at disposal or when the benchmark is interrupted. */
function owned(started: Started): Process {
  const kill = (): void => started.kill('SIGTERM');
  process.once('exit', kill);
  return {
    started,
    async [Symbol.asyncDispose]() {
      process.off('exit', kill);
      kill();
      await started.exit;
    },
  };
}

export type Policy = Process & { url: string };

/** Starts the scripted policy as a separate process, so that its CPU does not count as the farm's. */
export async function startPolicy(
  environment: BenchEnvironment,
  name: string,
  script: ScriptInput,
  args: readonly string[],
): Promise<Policy> {
  const file = join(environment.folder, `${name}.json`);
  await writeFile(file, JSON.stringify(script));
  const policy = owned(startCommand('swefarm-testkit', ['policy', '--script', file, ...args]));
  await policy.started.until(/^http:\S+/m);
  return { ...policy, url: policy.started.stdout().trim().split('\n')[0] ?? '' };
}

export type BenchWorker = AsyncDisposable & { pid: number; farm: Farm; metricsUrl: string };

/** Starts a worker, and opens a farm that only this worker serves. */
export async function startWorker(
  environment: BenchEnvironment,
  runtime: RuntimeName,
  concurrency: number,
  flags: readonly string[] = [],
): Promise<BenchWorker> {
  const prefix = `bench-${runtime}-${concurrency}-${flags.length}-${Date.now()}`;
  const port = await freePort();
  await using stack = new AsyncDisposableStack();
  const { folder, redisUrl } = environment;
  const args = words`run --runtime ${runtime} --concurrency ${concurrency} --metrics-port ${port}
    --state-dir ${join(folder, 'state')} --scratch-dir ${join(folder, 'scratch')}
    --redis-url ${redisUrl} --redis-prefix ${prefix} --docker-socket ${SOCKET} ${flags}`;
  const worker = stack.use(owned(startCommand('swefarm-worker', args)));
  await worker.started.until(/"msg":"ready"/);
  const config = loadConfig('producer', { env: {}, flags: { redisUrl, redisPrefix: prefix } });
  const farm = stack.use(await openFarm(config, 'producer'));
  const all = stack.move();
  return {
    pid: worker.started.pid,
    farm,
    metricsUrl: `http://127.0.0.1:${port}/metrics`,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Starts a worker of each runtime and warms it up: its first rollouts prepare the image, start threads and compile hot code. */
export async function startWarm(
  environment: BenchEnvironment,
  runtimes: readonly RuntimeName[],
  parallel: number,
  { instance, policy }: { instance: Instance; policy: { url: string } },
  stack: AsyncDisposableStack,
): Promise<Map<RuntimeName, BenchWorker>> {
  const workers = new Map<RuntimeName, BenchWorker>();
  for (const name of runtimes) {
    const worker = stack.use(await startWorker(environment, name, parallel));
    workers.set(name, worker);
    await runSolved(worker, instance, parallel, { policy, graded: true });
  }
  return workers;
}

export type Batch = { seconds: number; results: Result[] };

/** Submits `count` rollouts of one instance and waits for all: seconds from before the submit to the last commit, by Redis. */
export async function runBatch(
  worker: BenchWorker,
  instance: Instance,
  count: number,
  flags: Record<string, unknown>,
): Promise<Batch> {
  const dataset = { path: 'bench', sha256: '', instances: [instance] };
  const record = newRunRecord(
    { dataset, flags: { agent: 'mini', model: 'scripted', groupSize: count, ...flags } },
    false,
  );
  return await runSubmission(worker, { record, instances: [instance] }, count);
}

/** Does the same as {@link runBatch} for a run of `count` rollouts that the caller made. */
export async function runSubmission(
  { farm }: BenchWorker,
  submission: Submission,
  count: number,
): Promise<Batch> {
  const { record } = submission;
  const from = Date.now();
  await submit(farm, submission);
  const results: Result[] = [];
  let lastId = '0';
  while (results.length < count) {
    const batch = await farm.results.read(record.run_id, lastId, { blockMs: 60_000 });
    lastId = batch.last_id;
    results.push(...batch.results.map(({ result }) => result));
  }
  const wrong = results.find(({ outcome }) => outcome !== 'judged');
  if (wrong) throw new Error(`${wrong.rollout_id}: ${wrong.outcome} ${JSON.stringify(wrong.failure)}`);
  return { seconds: (Number(lastId.split('-')[0]) - from) / 1000, results };
}

/** Runs a batch of rollouts. `graded`: whether hidden tests run. @throws Error unless all are resolved, or have no verdict if not graded */
export async function runSolved(
  worker: BenchWorker,
  instance: Instance,
  count: number,
  { policy, graded }: { policy: { url: string }; graded: boolean },
): Promise<Batch> {
  const flags = { policyUrl: [policy.url], activate: ':', eval: graded };
  const batch = await runBatch(worker, instance, count, flags);
  const wrong = batch.results.find(({ resolved }) => resolved !== (graded ? true : null));
  if (wrong) throw new Error(`${wrong.rollout_id} should be resolved: ${JSON.stringify(wrong.facts)}`);
  return batch;
}
