/** Where a run lives: the farm that was given, or a Redis in the run's state folder. */
import { join, resolve } from 'node:path';
import { type Farm, type ProducerConfig, prepareFarm, type RunRecord, UsageError } from '@swefarm/shared';
import type { Output, OutputRun } from '@swefarm/trajectories';
import { startLocalRedis } from '../local/redis.ts';
import { openFarmPatiently } from './farm.ts';
import { quoted } from './terminal.ts';

export type Home = {
  config: ProducerConfig;
  /** Folder of Redis, artifacts and logs of this run; null when a Redis was given. */
  stateDir: string | null;
  logDir: string;
};

/** The given Redis, or one started in the run's state folder. */
export async function openHome(
  given: ProducerConfig,
  record: RunRecord,
  stored: OutputRun | null,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Home> {
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

/** The farm of a run's home, closed with the stack. */
export const openHomeFarm = async (
  { config }: Pick<Home, 'config'>,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Farm> => stack.use(await openFarmPatiently(config, signal, { entrusts: true }));

/** Lines that tell where a run's files are. */
export function describeHome(home: Home, path: string, copies: string | undefined, output: Output): string[] {
  // `INSTANCE.INDEX` of a line.
  const example = output.lines.keys().next().value?.split('.').slice(1).join('.');
  return [
    ...(path === '-' ? [] : [`results: ${resolve(path)}`]),
    `trajectories and reports: ${copies === undefined ? home.config.artifacts : resolve(copies)}`,
    ...(path === '-' || example === undefined
      ? []
      : [`read one with: npx swefarm show ${quoted(`${path}#${example}`)}`]),
    `worker log: ${join(home.logDir, 'worker.log')}`,
  ];
}
