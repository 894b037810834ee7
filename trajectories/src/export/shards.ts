/** Writes rows to a folder of data files (shards). After a kill, the same command continues after the complete shards. */
import { appendFile, mkdir, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@swefarm/shared';
import { z } from 'zod';
import { writing } from '../output/appendfile.ts';
import { asideOf, requireNewPath } from './aside.ts';
import type { ExportRequest, ExportWriter } from './format.ts';
import type { ExportedRollout } from './rollout.ts';

const Shard = z.object({ file: z.string(), rows: z.number().int(), rollouts: z.array(z.string()) });
type Shard = z.infer<typeof Shard>;

export type ShardOptions<R> = {
  /** Ending of the names of shards. */
  ending: string;
  /** Returns the rows of a rollout and their estimated bytes. Throws NotExportable. */
  rowsOf(rollout: ExportedRollout): { rows: readonly R[]; bytes: number };
  /** Estimated bytes of rows that are written together. */
  groupBytes: number;
  /** Estimated bytes at which a shard ends. */
  shardBytes: number;
  /** Creates a file. `add` appends a group of rows. */
  create(path: string): { add(rows: readonly R[]): Promise<void>; end(): Promise<void> };
  /** Facts for the manifest. */
  facts: Readonly<Record<string, unknown>>;
};

/** File with one line for each complete shard. */
const JOURNAL = 'shards.jsonl';
/** Begins with an underscore, because readers of table folders ignore names that begin with an underscore. */
const MANIFEST = '_manifest.json';

/** Opens or continues the folder. Throws the errors of {@link requireNewPath}; the methods throw UnusableError `output_unwritable`. */
export async function openShards<R>(
  { path, form, lines, fingerprint }: ExportRequest,
  { ending, rowsOf, groupBytes, shardBytes, create, facts }: ShardOptions<R>,
): Promise<ExportWriter> {
  await requireNewPath(path);
  const aside = asideOf(path);
  const shards = await writing(path, () => resume(aside, JSON.stringify({ form, lines, fingerprint })));
  const written = new Set(shards.flatMap(({ rollouts }) => rollouts));
  const nameOf = (at: number): string => `shard-${String(at).padStart(5, '0')}.${ending}`;
  const next = (): string => join(aside, `${nameOf(shards.length)}.part`);
  const begun = () => ({ file: create(next()), rows: 0, rollouts: new Set<string>(), bytes: 0 });
  let shard: ReturnType<typeof begun> | null = null;
  let group: R[] = [];
  let size = 0;
  const endGroup = async (into: ReturnType<typeof begun>): Promise<void> => {
    if (group.length > 0) await into.file.add(group);
    into.rows += group.length;
    into.bytes += size;
    group = [];
    size = 0;
  };
  const endShard = async (ended: ReturnType<typeof begun>): Promise<void> => {
    await endGroup(ended);
    await ended.file.end();
    const complete = { file: nameOf(shards.length), rows: ended.rows, rollouts: [...ended.rollouts] };
    await rename(next(), join(aside, complete.file));
    await appendFile(join(aside, JOURNAL), `${JSON.stringify(complete)}\n`);
    shards.push(complete);
    for (const id of ended.rollouts) written.add(id);
    shard = null;
  };
  return {
    written,
    async write(rollout) {
      const { rows, bytes } = rowsOf(rollout);
      await writing(path, async () => {
        shard ??= begun();
        shard.rollouts.add(rollout.line.rollout_id);
        group.push(...rows);
        size += bytes;
        if (size >= groupBytes) await endGroup(shard);
        if (shard.bytes >= shardBytes) await endShard(shard);
      });
    },
    finish: () =>
      writing(path, async () => {
        if (shard) await endShard(shard);
        const files = shards.map((one) => ({ ...one, rollouts: one.rollouts.length }));
        const manifest = { format: 'swefarm-shards-1', form, ...facts, shards: files };
        await replaceIn(aside, MANIFEST, `${JSON.stringify(manifest, null, 1)}\n`);
        await publish(path);
      }),
    // After `finish`, the folder `aside` no longer exists.
    async [Symbol.asyncDispose]() {
      await rm(next(), { force: true });
      if (shards.length === 0) await rm(aside, { recursive: true, force: true });
    },
  };
}

async function publish(path: string): Promise<void> {
  await rm(join(asideOf(path), JOURNAL));
  await rmdir(path).catch(() => undefined);
  await rename(asideOf(path), path);
}

/** Returns the shards of an earlier start with the same selection and removes all other files. */
async function resume(aside: string, head: string): Promise<Shard[]> {
  const text = await readFile(join(aside, JOURNAL), 'utf8').catch(() => '');
  const [first, ...lines] = text.split('\n');
  if (first === head && text.includes('\n')) {
    // The last line may be incomplete after a kill. Its shard is written again.
    const shards = lines.slice(0, -1).map((line) => Shard.parse(JSON.parse(line)));
    const known = [JOURNAL, ...shards.map(({ file }) => file)];
    for (const name of await readdir(aside))
      if (!known.includes(name)) await rm(join(aside, name), { recursive: true, force: true });
    await replaceIn(aside, JOURNAL, [head, ...shards.map((shard) => JSON.stringify(shard)), ''].join('\n'));
    return shards;
  }
  await rm(aside, { recursive: true, force: true });
  await mkdir(aside);
  await appendFile(join(aside, JOURNAL), `${head}\n`);
  return [];
}

/** The temporary name is fixed, so that the next start overwrites the file of an interrupted write. */
const replaceIn = (folder: string, name: string, content: string): Promise<void> =>
  replaceFile(join(folder, name), content, { aside: join(folder, `${name}.part`) });
