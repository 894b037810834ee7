/** The dry run of `swefarm serve --replay`: a Redis and a worker of its own, which answers with stored rollouts. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StoredInstances } from '@swefarm/gateway';
import { merge, type SettingsTree } from '@swefarm/runs';
import {
  type ArtifactContent,
  childEnvironment,
  type DryRun,
  DryRunScript,
  encodeArtifact,
  errorMessage,
  type Instance,
  isArtifactFile,
  launchRedis,
  loadConfig,
  newId,
  ownFolder,
  type ProducerConfig,
  parseYamlLines,
  type StoredRollout,
  UsageError,
} from '@swefarm/shared';
import { artifactOfLine, type OutputLine, openSource } from '@swefarm/trajectories';
import { type LocalWorker, startLocalWorker } from '../local/worker.ts';
import { flag, group, list, text, type Values } from './declare.ts';
import { lazyFarm } from './farm.ts';
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

/** Starts the dry run; null without `--replay`. `stack` ends it and removes its data. Throws UsageError, and errors of Redis. */
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
  const { rollouts, families, model } = await readStored(replay, given, folder);
  const redis = stack.use(
    await launchRedis({ dir: join(folder, 'redis'), binDir: join(given.state_dir, 'bin'), signal }),
  );
  const artifacts = `dir:${join(folder, 'artifacts')}`;
  const config = { ...given, ...withoutRedis(), redis_url: redis.url, artifacts };
  const file = join(folder, 'dry-run.json');
  const dryRun: DryRun = { format: 'swefarm-dry-run-1', script, any, rollouts };
  await writeFile(file, JSON.stringify(dryRun));
  const worker = stack.use(
    startLocalWorker({
      args: [
        ...['dry-run', file, '--artifacts', artifacts, '--state-dir', folder],
        ...['--scratch-dir', join(folder, 'scratch'), '--metrics-port', 'auto', '--log-format', 'json'],
      ],
      firstArgs: [],
      results: () => 0,
      // The variables of this process may name the Redis of a real farm.
      environment: childEnvironment({ SWEFARM_REDIS_URL: redis.url.reveal() }),
      logFile: join(given.state_dir, 'dry-run-worker.log'),
      onNote: printStatus,
    }),
  );
  const instances = new StoredInstances(families, any);
  const settings = { policy: { urls: ['http://dry-run.invalid/v1'], model: script.model ?? model } };
  printStatus(
    `dry run: ${rollouts.length} stored rollouts of ${instances.size} instances; no model is asked`,
  );
  return { config, script, instances, settings, worker };
}

/** Returns the defaults of the keys about Redis, without login and certificates of a real farm. */
const withoutRedis = (): Partial<ProducerConfig> =>
  Object.fromEntries(
    Object.entries(loadConfig('producer', { env: {} })).filter(([key]) => key.startsWith('redis_')),
  );

/** Merges the settings of `serve` over those that a dry run needs. */
export const withDryRun = (settings: SettingsTree, dryRun: OpenedDryRun | null): SettingsTree =>
  dryRun === null ? settings : merge(merge({}, dryRun.settings), settings);

/** Reads a script. Throws UsageError with line and field of each mistake. */
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

/** Reads the judged rollouts of outputs. Artifacts that are no files are copied into `folder`. */
async function readStored(files: readonly string[], config: ProducerConfig, folder: string) {
  await using origin = lazyFarm(() => config);
  const rollouts: StoredRollout[] = [];
  const families = new Map<string, Instance['family'] | undefined>();
  const leftOut = new Map<string, number>();
  let model: string | null = null;
  for (const file of files) {
    if (!existsSync(file))
      throw new UsageError(`--replay ${file}: no such file; name an output of rollout or collect`);
    const source = await openSource(file, { farm: origin.farm, onWarning: printStatus });
    for await (const line of source.lines()) {
      const why = unusable(line);
      if (why !== null || line.facts === null) {
        leftOut.set(why ?? 'without facts', (leftOut.get(why ?? 'without facts') ?? 0) + 1);
        continue;
      }
      const artifact = await artifactFile(line, folder, () => artifactOfLine(line, origin.farm)).catch(
        (error) => {
          throw new UsageError(`--replay ${file}: ${line.rollout_id}: ${errorMessage(error)}`, {
            cause: error,
          });
        },
      );
      const { rollout_id, instance_id, facts } = line;
      const seconds = line.seconds.agent + line.seconds.evaluation;
      rollouts.push({ rollout_id, instance_id, seconds, facts, artifact });
      families.set(instance_id, line.family as Instance['family']);
      model ??=
        source.record?.policy?.model ?? (await artifactOfLine(line, origin.farm))?.trajectory?.model ?? null;
    }
  }
  for (const [why, count] of leftOut) printStatus(`dry run: left out ${count} rollouts ${why}`);
  if (rollouts.length > 0) return { rollouts, families, model: model ?? 'stored' };
  throw new UsageError(`--replay ${files.join(', ')}: no judged rollout with an artifact is stored there`);
}

function unusable(line: OutputLine): string | null {
  if (line.dry_run) return 'of an earlier dry run';
  if (line.outcome !== 'judged') return 'without a verdict';
  return line.artifact === null && line.artifact_file === undefined ? 'without an artifact' : null;
}

/** Returns the path of the artifact's file, which this function writes if the artifact is in Redis. */
async function artifactFile(
  { artifact, artifact_file, rollout_id }: OutputLine,
  folder: string,
  read: () => Promise<ArtifactContent | null>,
): Promise<string> {
  const own =
    artifact_file ?? (artifact !== null && isArtifactFile(artifact) ? fileURLToPath(artifact) : null);
  if (own !== null) {
    if (!existsSync(own)) throw new UsageError(`its artifact ${own} does not exist`);
    return resolve(own);
  }
  const content = await read();
  if (content === null) throw new UsageError('its artifact is gone');
  await mkdir(join(folder, 'stored'), { recursive: true });
  const copy = join(folder, 'stored', `${rollout_id}.json.gz`);
  await writeFile(copy, await encodeArtifact(content));
  return copy;
}
