/** A run on this machine: starts its Redis and workers, and collects until all results are there or no worker is left. */
import { join, resolve } from 'node:path';
import { localAbility, rolloutIds, submit, workerWarnings } from '@swefarm/runs';
import {
  asksPolicy,
  type Farm,
  type Instance,
  inheritedEnvironment,
  loadConfig,
  onAbort,
  ownFolder,
  type ProducerConfig,
  prepareFarm,
  type RunRecord,
  UsageError,
} from '@swefarm/shared';
import type { Collected, CollectOptions, Output, OutputRun } from '@swefarm/trajectories';
import { startLocalRedis } from '../local/redis.ts';
import { type LocalWorker, type LocalWorkerOptions, startLocalWorker } from '../local/worker.ts';
import type { Progress, ProgressWords } from '../view/progress.ts';
import { type Follow, follow } from './follow.ts';
import type { Flags } from './options.ts';
import type { Stop } from './stop.ts';
import { quoted, say } from './terminal.ts';

export type RunFolder = {
  config: ProducerConfig;
  /** Folder of Redis, artifacts and logs of this run; null when a Redis was given. */
  stateDir: string | null;
  logDir: string;
};

/** The given Redis, or one started in the run's state folder. */
export async function openRunFolder(
  given: ProducerConfig,
  record: RunRecord,
  stored: OutputRun | null,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<RunFolder> {
  const runDir = join(given.state_dir, 'runs', record.run_id);
  if (given.redis_url !== null && !stored?.state_dir) {
    return { config: given, stateDir: null, logDir: runDir };
  }
  if (given.redis_url !== null) {
    throw new UsageError(
      `this run has a Redis of its own (${stored?.state_dir}): resume it without --redis-url, SWEFARM_REDIS_URL and REDIS_URL`,
    );
  }
  if (stored && stored.state_dir === null) {
    throw new UsageError('this run was submitted to a Redis; resume it with the same --redis-url');
  }
  const stateDir = stored?.state_dir ?? runDir;
  const starting = startLocalRedis(stateDir, given.state_dir, signal);
  await Promise.allSettled([starting, prepareFarm()]);
  const redis = stack.use(await starting);
  const artifacts = given.artifacts === 'redis:' ? `dir:${join(stateDir, 'artifacts')}` : given.artifacts;
  return { config: { ...given, redis_url: redis.url, artifacts }, stateDir, logDir: stateDir };
}

/** Time for a worker to remove its containers when nothing else can be saved. */
const REMOVAL_MS = 10_000;

export type LocalRun = {
  farm: Farm;
  output: Output;
  record: RunRecord;
  instances: readonly Instance[];
  patches: ReadonlyMap<string, readonly string[]> | undefined;
  /** Rollouts that the output must have at the end; other rollouts of the run are not queued. */
  rollouts: ReadonlySet<string>;
  onResult?: CollectOptions['onResult'];
  /** As in CollectOptions: a collection queues more as results come. */
  collecting?: Pick<Follow, 'feed' | 'mark' | 'onLine'>;
  /** Default: as the run's agent has them. */
  words?: ProgressWords;
  flags: Flags;
  place: RunFolder;
  stop: Stop;
};

/** Starts workers, queues the missing rollouts and collects. The result is incomplete when a signal came first. */
export async function runLocally(run: LocalRun): Promise<Collected> {
  const { farm, output, record, instances, patches, rollouts, flags, place, stop } = run;
  const open = [...rollouts].filter((id) => !output.lines.has(id));
  if (open.length === 0 && !run.collecting?.feed) return { complete: true, unreadable: [] };
  const wanted = new Set(open);
  for (const warning of await workerWarnings(instances, record, farm, startedWorkers(flags, place)))
    say(`swefarm: ${warning}`);
  const done = new Set(rolloutIds(record, instances).filter((id) => !wanted.has(id)));
  let progress: Progress | null = null;
  const note = (text: string): void =>
    progress ? progress.say(`swefarm: ${text}`) : say(`swefarm: ${text}`);
  // Nothing is refused any more, so workers load their code while the rollouts are queued.
  const workers = await startWorkers(flags, place, { onNote: note, results: () => output.lines.size });
  stop.onForced(() => {
    for (const worker of workers) worker.kill();
  });
  // Collecting ends when all results are there, when no worker can be kept alive, or when drained workers have exited.
  const ended = new AbortController();
  const drainWorkers = (limitMs?: number) => Promise.all(workers.map((worker) => worker.drain(limitMs)));
  using _drain = onAbort(stop.draining, () => void drainWorkers());
  const watch = Promise.all(workers.map((worker) => worker.ended)).then((ends) => {
    if (workers.length > 0) ended.abort();
    return ends.find((end) => end !== null) ?? null;
  });
  let broken = true;
  try {
    await submit(farm, { record, instances, done, ...(patches ? { patches } : {}) }, stop.draining);
    const collected = await follow({
      farm,
      config: place.config,
      runId: record.run_id,
      rollouts,
      output,
      growing: record.refills > 0,
      copyArtifactsTo: flags.copyArtifacts as string | undefined,
      ...(run.onResult ? { onResult: run.onResult } : {}),
      ...run.collecting,
      words: run.words ?? {
        resolved: true,
        turns: asksPolicy(record.agent.type) || record.agent.type === 'external',
      },
      // Other workers of the farm do not stop with this command, so a signal ends collecting at once.
      signal: workers.length > 0 ? ended.signal : stop.draining,
      onProgress: (shown) => {
        progress = shown;
      },
    });
    progress = null;
    if (!collected.complete && !stop.draining.aborted) {
      const reason = await watch;
      if (reason) throw reason;
    }
    broken = false;
    return collected;
  } finally {
    progress = null;
    // Without its infrastructure a worker cannot commit results: it only removes its containers.
    await drainWorkers(broken ? REMOVAL_MS : undefined);
  }
}

/** What the workers can do that this command starts; they read the same configuration. */
function startedWorkers(flags: Flags, { config }: RunFolder): ReturnType<typeof localAbility>[] {
  if (localWorkersOf(flags, config) === 0) return [];
  return [localAbility(loadConfig('worker', { flags: { config: flags.config } }).parser_image)];
}

const localWorkersOf = (flags: Flags, config: ProducerConfig): number =>
  flags.localWorker === false ? 0 : config.local_workers;

async function startWorkers(
  flags: Flags,
  place: RunFolder,
  heard: Pick<LocalWorkerOptions, 'onNote' | 'results'>,
): Promise<LocalWorker[]> {
  const { config, logDir } = place;
  const args = ['run', ...workerFlags(flags, place)];
  const firstArgs = firstStartFlags(flags);
  const command =
    flags.workerCommand === undefined ? undefined : String(flags.workerCommand).split(/\s+/).filter(Boolean);
  const count = localWorkersOf(flags, config);
  // The URL of our own Redis has a password, which must not appear in the process list.
  const url = place.stateDir === null ? undefined : config.redis_url?.reveal();
  const environment = inheritedEnvironment(url === undefined ? {} : { SWEFARM_REDIS_URL: url });
  if (count > 0) await ownFolder(logDir, { setting: 'state_dir' });
  return Array.from({ length: count }, (_, index) => {
    const logFile = join(logDir, count === 1 ? 'worker.log' : `worker-${index + 1}.log`);
    return startLocalWorker({ command, args, firstArgs, environment, logFile, ...heard });
  });
}

/** A person who starts a run is told within seconds that no engine answers, unless a patience of their own was configured. */
function firstStartFlags(flags: Flags): string[] {
  const usual = loadConfig('worker', { env: {} }).engine_patience_seconds;
  const set = loadConfig('worker', { flags: { config: flags.config } }).engine_patience_seconds;
  return set === usual ? ['--engine-patience-seconds', String(FIRST_PATIENCE_SECONDS)] : [];
}
const FIRST_PATIENCE_SECONDS = 3;

/** The worker reads environment and configuration file itself; only flags and this command's decisions are passed on. */
function workerFlags(flags: Flags, place: RunFolder): string[] {
  const handed: Record<string, unknown> = {
    '--config': flags.config,
    '--runtime': flags.runtime,
    '--concurrency': flags.concurrency,
    '--apptainer-images': flags.apptainerImages,
    '--redis-url': place.stateDir === null ? flags.redisUrl : undefined,
    '--artifacts': place.stateDir === null ? flags.artifacts : place.config.artifacts,
    '--redis-username': flags.redisUsername,
    '--redis-tls-ca': flags.redisTlsCa,
    '--redis-tls-cert': flags.redisTlsCert,
    '--redis-tls-key': flags.redisTlsKey,
    '--redis-sentinel-username': flags.redisSentinelUsername,
    '--redis-durability': flags.redisDurability,
    '--redis-prefix': flags.redisPrefix,
    '--state-dir': flags.stateDir,
    '--log-level': flags.logLevel,
    '--artifact-budget-bytes': flags.artifactBudgetBytes,
    '--artifact-ttl-seconds': flags.artifactTtlSeconds,
    '--log-format': 'json',
  };
  return Object.entries(handed).flatMap(([flag, value]) =>
    value === undefined ? [] : [flag, String(value)],
  );
}

/** `example`: the id of a rollout in the output, or null. */
export function describeRunFolder(
  path: string,
  place: RunFolder,
  flags: Flags,
  example: string | null,
): string[] {
  const copies = flags.copyArtifacts as string | undefined;
  return [
    ...(path === '-' ? [] : [`results: ${resolve(path)}`]),
    `trajectories and reports: ${copies === undefined ? place.config.artifacts : resolve(copies)}`,
    ...(path === '-' || example === null
      ? []
      : [`read one with: npx swefarm show ${quoted(`${path}#${example}`)}`]),
    `worker log: ${join(place.logDir, 'worker.log')}`,
  ];
}
