/** Opens the farm of a command: the configured Redis, or for a run a new Redis in the state folder of the run. */
import { join, resolve } from 'node:path';
import {
  createLazy,
  type Farm,
  launchRedis,
  type OpenOptions,
  openFarm,
  type ProducerConfig,
  prepareFarm,
  type RunRecord,
  UsageError,
} from '@swefarm/shared';
import type { Output, OutputRun } from '@swefarm/trajectories';
import { printStatus, quoted } from './terminal.ts';

/** Opens the farm, and waits up to `redis_patience_seconds` for Redis. Throws the errors of `openFarm`. */
export const openFarmPatiently = async (
  config: ProducerConfig,
  signal?: AbortSignal,
  { entrusts = false }: Pick<OpenOptions, 'entrusts'> = {},
): Promise<Farm> =>
  await openFarm(config, 'producer', {
    entrusts,
    patienceSeconds: config.redis_patience_seconds,
    onWait: (text) => printStatus(`swefarm: ${text}`),
    ...(signal ? { signal } : {}),
  });

/** Returns a farm that is opened at the first call of `farm`. */
export function lazyFarm(config: () => ProducerConfig) {
  const farm = createLazy(async () => await openFarm(config(), 'producer'));
  return {
    farm: farm.get,
    async [Symbol.asyncDispose]() {
      const opened = await farm.started()?.catch(() => null);
      await opened?.[Symbol.asyncDispose]();
    },
  };
}

export type Home = {
  farm: Farm;
  config: ProducerConfig;
  /** Folder with Redis, artifacts and logs of the run; null: the configuration names a Redis. */
  stateDir: string | null;
  logDir: string;
};

/** Opens the farm; `stack` closes it. Throws UsageError when a resumed run began with the other kind of Redis. */
export async function openHome(
  given: ProducerConfig,
  record: RunRecord,
  stored: OutputRun | null,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Home> {
  const runDir = join(given.state_dir, 'runs', record.run_id);
  const open = async (config: ProducerConfig): Promise<Farm> =>
    stack.use(await openFarmPatiently(config, signal, { entrusts: true }));
  if (given.redis_url !== null) {
    if (!stored?.state_dir) return { farm: await open(given), config: given, stateDir: null, logDir: runDir };
    throw new UsageError(
      `this run has a Redis of its own (${stored.state_dir}): resume it without --redis-url, SWEFARM_REDIS_URL and REDIS_URL`,
    );
  }
  if (stored?.state_dir === null) {
    throw new UsageError('this run was submitted to a Redis; resume it with the same --redis-url');
  }
  const stateDir = stored?.state_dir ?? runDir;
  // The data of this Redis stay in the state folder, so that a later command can resume the run.
  const binDir = join(given.state_dir, 'bin');
  const starting = launchRedis({ dir: join(stateDir, 'redis'), binDir, signal });
  await Promise.allSettled([starting, prepareFarm()]);
  const redis = stack.use(await starting);
  const artifacts = given.artifacts === 'redis:' ? `dir:${join(stateDir, 'artifacts')}` : given.artifacts;
  const config = { ...given, redis_url: redis.url, artifacts };
  return { farm: await open(config), config, stateDir, logDir: stateDir };
}

/** Returns lines with the paths of a run's files. */
export function describeHome(home: Home, path: string, copies: string | undefined, output: Output): string[] {
  const isFile = path !== '-';
  // `INSTANCE.INDEX` of the first rollout.
  const example = output.lines.keys().next().value?.split('.').slice(1).join('.');
  return [
    ...(isFile ? [`results: ${resolve(path)}`] : []),
    `trajectories and reports: ${copies === undefined ? home.config.artifacts : resolve(copies)}`,
    ...(isFile && example !== undefined
      ? [`read one with: npx swefarm show ${quoted(`${path}#${example}`)}`]
      : []),
    `worker log: ${join(home.logDir, 'worker.log')}`,
  ];
}
