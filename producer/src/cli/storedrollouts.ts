/** Reads rollouts for a dry run from output files. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  decodeArtifact,
  encodeArtifact,
  errorMessage,
  type Instance,
  isArtifactFile,
  type ProducerConfig,
  type StoredRollout,
  UsageError,
} from '@swefarm/shared';
import { copyOf, type OutputLine, openSource, type ResultSource } from '@swefarm/trajectories';
import { lazyFarm } from './farm.ts';
import { printStatus } from './terminal.ts';

export type StoredRollouts = {
  rollouts: StoredRollout[];
  /** Families by instance id. */
  families: ReadonlyMap<string, Instance['family'] | undefined>;
  /** Model of the first rollout. */
  model: string;
};

/**
 * Reads the judged rollouts of output files, and prints how many other rollouts it skips. Copies artifacts from Redis into `folder`.
 * @throws UsageError for a file that is no output or has no usable rollout, and for a missing artifact
 */
export async function readStoredRollouts(
  files: readonly string[],
  config: ProducerConfig,
  folder: string,
): Promise<StoredRollouts> {
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
      if (why !== null) leftOut.set(why, (leftOut.get(why) ?? 0) + 1);
      if (why !== null || line.facts === null) continue;
      const artifact = await artifactFile(line, source, folder).catch((error: unknown) => {
        const text = `--replay ${file}: the artifact of ${line.rollout_id}: ${errorMessage(error)}`;
        throw new UsageError(text, { cause: error });
      });
      const { rollout_id, instance_id, facts } = line;
      const seconds = line.seconds.agent + line.seconds.evaluation;
      rollouts.push({ rollout_id, instance_id, seconds, facts, artifact });
      families.set(instance_id, line.family as Instance['family']);
      model ??= source.record?.policy?.model ?? (await modelIn(artifact));
    }
  }
  for (const [why, count] of leftOut) printStatus(`dry run: left out ${count} rollouts ${why}`);
  if (rollouts.length > 0) return { rollouts, families, model: model ?? 'stored' };
  throw new UsageError(`--replay ${files.join(', ')}: no judged rollout with an artifact is stored there`);
}

/** Returns why a dry run cannot use a rollout; null: it can use it. */
function unusable({ dry_run, outcome, facts, artifact, artifact_file }: OutputLine): string | null {
  if (dry_run) return 'of an earlier dry run';
  if (outcome !== 'judged') return 'without a verdict';
  if (facts === null) return 'without the facts of a reward';
  return artifact === null && artifact_file === undefined ? 'without an artifact' : null;
}

const modelIn = async (artifact: string): Promise<string | null> =>
  (await decodeArtifact(await readFile(artifact))).trajectory?.model ?? null;

/** Returns the path of the artifact's file. Writes the file first if the artifact is in Redis. */
async function artifactFile(line: OutputLine, source: ResultSource, folder: string): Promise<string> {
  const { artifact, rollout_id } = line;
  const own =
    copyOf(line, source.name) ??
    (artifact !== null && isArtifactFile(artifact) ? fileURLToPath(artifact) : null);
  if (own !== null) {
    if (existsSync(own)) return own;
    throw new UsageError(`${own} does not exist`);
  }
  const content = await source.artifact(line);
  if (content === null) throw new UsageError('it is gone');
  await mkdir(join(folder, 'stored'), { recursive: true });
  const stored = join(folder, 'stored', `${rollout_id}.json.gz`);
  await writeFile(stored, await encodeArtifact(content));
  return stored;
}
