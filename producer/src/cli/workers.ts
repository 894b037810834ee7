/** Starts the workers of a command on this machine. */
import { join } from 'node:path';
import { localAbility } from '@swefarm/runs';
import { configOptions, inheritedEnvironment, loadConfig, ownFolder } from '@swefarm/shared';
import { Option } from 'commander';
import { type LocalWorker, type LocalWorkerOptions, startLocalWorker } from '../local/worker.ts';
import type { Home } from './farm.ts';
import type { ConfigValues } from './options.ts';

export type WorkerValues = {
  farm: ConfigValues;
  runtime: string | undefined;
  workerCommand: string | undefined;
  concurrency?: string | number | undefined;
  apptainerImages?: string | undefined;
  localWorker?: boolean;
};

export type LocalWorkers = {
  abilities: readonly ReturnType<typeof localAbility>[];
  start(listeners: Pick<LocalWorkerOptions, 'onNote' | 'results'>): Promise<LocalWorker[]>;
};

/** No local workers: the workers of the farm run the rollouts. */
export const NO_WORKERS: LocalWorkers = { abilities: [], start: async () => [] };

export function localWorkers(o: WorkerValues, home: Home): LocalWorkers {
  const count = o.localWorker === false ? 0 : home.config.local_workers;
  if (count === 0) return NO_WORKERS;
  // The workers read the configuration file of this command.
  const own = loadConfig('worker', { flags: { config: o.farm.config } });
  return {
    abilities: [localAbility(own.parser_image)],
    async start(listeners) {
      const { config, logDir, stateDir } = home;
      // The URL of a run's own Redis has a password, which must not appear in the process list.
      const url = stateDir === null ? undefined : config.redis_url?.reveal();
      const options = {
        command: o.workerCommand?.split(/\s+/).filter(Boolean),
        args: ['run', ...workerFlags(o, home)],
        firstArgs: firstStartFlags(own.engine_patience_seconds),
        environment: inheritedEnvironment(url === undefined ? {} : { SWEFARM_REDIS_URL: url }),
      };
      await ownFolder(logDir, { setting: 'state_dir' });
      return Array.from({ length: count }, (_, index) => {
        const logFile = join(logDir, count === 1 ? 'worker.log' : `worker-${index + 1}.log`);
        return startLocalWorker({ ...options, logFile, ...listeners });
      });
    },
  };
}

/** Returns flags with which the first start reports a missing container engine within seconds, unless the patience is configured. */
function firstStartFlags(patience: number): string[] {
  const usual = loadConfig('worker', { env: {} }).engine_patience_seconds;
  return patience === usual ? ['--engine-patience-seconds', String(FIRST_PATIENCE_SECONDS)] : [];
}
const FIRST_PATIENCE_SECONDS = 3;

/** Returns the flags of the worker. The worker itself reads the environment and the configuration file. */
function workerFlags({ farm, runtime, concurrency, apptainerImages }: WorkerValues, home: Home): string[] {
  const shared = new Map(configOptions('worker').map(({ key, flag }) => [key, new Option(flag)]));
  for (const key of OWN_KEYS) shared.delete(key);
  const given = [...shared.values()].map((one) => [one.long, farm[one.attributeName()]] as const);
  const isGiven = home.stateDir === null;
  const flags = [
    ['--config', farm.config],
    ['--runtime', runtime],
    ['--concurrency', concurrency],
    ['--apptainer-images', apptainerImages],
    ['--redis-url', isGiven ? farm.redisUrl : undefined],
    ['--artifacts', isGiven ? farm.artifacts : home.config.artifacts],
    ...given,
    ['--log-format', 'json'],
  ] as const;
  return flags.flatMap(([name, value]) => (!name || value === undefined ? [] : [name, String(value)]));
}

/** Keys that this command decides for its workers. */
const OWN_KEYS = new Set(['redis_url', 'artifacts', 'log_format']);
