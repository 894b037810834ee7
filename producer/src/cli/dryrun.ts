/** The dry run of `swefarm serve --replay`: starts its own Redis, and a worker that answers with stored rollouts. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StoredInstances } from '@swefarm/gateway';
import { merge, type SettingsTree } from '@swefarm/runs';
import {
  childEnvironment,
  type DryRun,
  DryRunScript,
  errorMessage,
  launchRedis,
  loadConfig,
  newId,
  ownFolder,
  type ProducerConfig,
  parseYamlLines,
  UsageError,
} from '@swefarm/shared';
import { type LocalWorker, startLocalWorker } from '../local/worker.ts';
import { flag, group, list, text, type Values } from './declare.ts';
import { readStoredRollouts } from './storedrollouts.ts';
import { printStatus } from './terminal.ts';

export const DRY_RUN = group('Dry run:', {
  '--replay <file>': list(
    'answer with the rollouts of this output, without model and sandbox, in a Redis of its own (docs/dry-run.md; repeatable)',
  ),
  '--replay-any': flag('give instances without a stored rollout those of others'),
  '--faults <file>': text('YAML script of delays, failures and broken connections'),
});

export type OpenedDryRun = {
  /** Configuration with the Redis of the dry run. */
  config: ProducerConfig;
  script: DryRunScript;
  instances: StoredInstances;
  settings: SettingsTree;
  worker: LocalWorker;
};

type DryRunValues = Values<typeof DRY_RUN> & { farm: Readonly<Record<string, string | undefined>> };

/** Starts the dry run; null without `--replay`. `stack` stops it and removes its data. Throws UsageError, and errors of Redis. */
export async function openDryRun(
  { replay, replayAny: any, faults, farm }: DryRunValues,
  given: ProducerConfig,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<OpenedDryRun | null> {
  if (replay === undefined) {
    if (any || faults !== undefined) throw new UsageError('--replay-any and --faults need --replay FILE');
    return null;
  }
  if (farm.redisUrl !== undefined)
    throw new UsageError(
      '--replay starts a Redis of its own, away from real rollouts: leave --redis-url out',
    );
  const script = faults === undefined ? DryRunScript.parse({}) : await readScript(faults);
  const folder = join(given.state_dir, 'dry-runs', newId());
  await ownFolder(folder, { setting: 'state_dir' });
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const { rollouts, families, model } = await readStoredRollouts(replay, given, folder);
  const redis = stack.use(
    await launchRedis({ dir: join(folder, 'redis'), binDir: join(given.state_dir, 'bin'), signal }),
  );
  const artifacts = `dir:${join(folder, 'artifacts')}`;
  const config = { ...given, ...withoutRedis(), redis_url: redis.url, artifacts };
  const file = join(folder, 'dry-run.json');
  const dryRun: DryRun = { format: 'swefarm-dry-run-1', script, any, rollouts };
  await writeFile(file, JSON.stringify(dryRun));
  const worker = startLocalWorker({
    args: [
      ...['dry-run', file, '--artifacts', artifacts, '--state-dir', folder],
      ...['--scratch-dir', join(folder, 'scratch'), '--metrics-port', 'auto', '--log-format', 'json'],
    ],
    firstArgs: [],
    results: () => 0,
    // Environment variables of this process may name the Redis of a real farm.
    environment: childEnvironment({ SWEFARM_REDIS_URL: redis.url.reveal() }),
    logFile: join(given.state_dir, 'dry-run-worker.log'),
    onNote: printStatus,
  });
  stack.defer(async () => {
    // A drain would wait for the delays of running rollouts, whose results are no longer needed.
    worker.kill();
    await worker.ended;
  });
  const instances = new StoredInstances(families, any);
  const settings = { policy: { urls: ['http://dry-run.invalid/v1'], model: script.model ?? model } };
  printStatus(
    `dry run: ${rollouts.length} stored rollouts of ${instances.size} instances; no model is asked`,
  );
  return { config, script, instances, settings, worker };
}

/** Returns the default Redis settings, so that the login and certificates of a real farm are not used. */
const withoutRedis = (): Partial<ProducerConfig> =>
  Object.fromEntries(
    Object.entries(loadConfig('producer', { env: {} })).filter(([key]) => key.startsWith('redis_')),
  );

/** Merges the settings of `serve` over the defaults of the dry run. */
export const withDryRun = (settings: SettingsTree, dryRun: OpenedDryRun | null): SettingsTree =>
  dryRun === null ? settings : merge(merge({}, dryRun.settings), settings);

/** Reads a script of faults. Throws UsageError with line and field of each mistake. */
export async function readScript(path: string): Promise<DryRunScript> {
  let read: ReturnType<typeof parseYamlLines>;
  try {
    read = parseYamlLines(await readFile(path, 'utf8'));
  } catch (error) {
    throw new UsageError(`--faults ${path}: ${errorMessage(error)}`, { cause: error });
  }
  const parsed = DryRunScript.safeParse(read.value ?? {});
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => {
    const keys = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
    const at = [...issue.path, ...keys];
    return `  line ${read.lineOf(at)}: ${at.map(String).join('.') || 'the script'}: ${issue.message}`;
  });
  throw new UsageError([`--faults ${path} (fields: docs/dry-run.md):`, ...lines].join('\n'), {
    cause: parsed.error,
  });
}
