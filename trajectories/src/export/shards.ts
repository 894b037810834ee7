/**
 * A folder of shards, each whole, that appears under its name once all of them are there. A killed export keeps the shards that it had
 * finished beside that place, and the same command goes on after them.
 */
import { appendFile, mkdir, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@swefarm/shared';
import { z } from 'zod';
import { asideOf, requireNewPath, unwritablePath } from './aside.ts';
import type { ExportRequest } from './format.ts';

const Shard = z.object({ file: z.string(), rows: z.number().int(), rollouts: z.array(z.string()) });
type Shard = z.infer<typeof Shard>;

export interface ShardFolder extends AsyncDisposable {
  /** Rollouts of the shards that are there. */
  readonly written: ReadonlySet<string>;
  /** Where the next shard is made, under a name that counts only once it is added. */
  next(): string;
  /** Makes the file at `next()` a shard. `rollouts`: all whose rows it has. Throws UnusableError `output_unwritable`. */
  add(rows: number, rollouts: readonly string[]): Promise<void>;
  finish(facts: Readonly<Record<string, unknown>>): Promise<void>;
}

/** One line for each shard, in the folder that is not whole yet. */
const JOURNAL = 'shards.jsonl';
/** Readers of folders of tables skip names that begin so. */
const MANIFEST = '_manifest.json';

/** Throws UsageError for a path that holds something. */
export async function openShards(
  { path, form, fingerprint }: ExportRequest,
  ending: string,
): Promise<ShardFolder> {
  await requireNewPath(path);
  const aside = asideOf(path);
  const head = JSON.stringify({ form, fingerprint });
  const trying = async <T>(action: () => Promise<T>): Promise<T> => {
    try {
      return await action();
    } catch (error) {
      throw unwritablePath(path, error);
    }
  };
  const shards = await trying(() => resume(aside, head));
  const written = new Set(shards.flatMap(({ rollouts }) => rollouts));
  const nameOf = (at: number): string => `shard-${String(at).padStart(5, '0')}.${ending}`;
  const next = (): string => join(aside, `${nameOf(shards.length)}.part`);
  let whole = false;
  return {
    written,
    next,
    add: (rows, rollouts) =>
      trying(async () => {
        const shard = { file: nameOf(shards.length), rows, rollouts: [...new Set(rollouts)] };
        await rename(next(), join(aside, shard.file));
        await appendFile(join(aside, JOURNAL), `${JSON.stringify(shard)}\n`);
        shards.push(shard);
        for (const id of shard.rollouts) written.add(id);
      }),
    finish: (facts) =>
      trying(async () => {
        const files = shards.map(({ file, rows, rollouts }) => ({ file, rows, rollouts: rollouts.length }));
        const manifest = { format: 'swefarm-shards-1', form, ...facts, shards: files };
        await replaceIn(aside, MANIFEST, `${JSON.stringify(manifest, null, 1)}\n`);
        await rm(join(aside, JOURNAL));
        await rmdir(path).catch(() => undefined);
        await rename(aside, path);
        whole = true;
      }),
    async [Symbol.asyncDispose]() {
      if (whole) return;
      await rm(next(), { force: true });
      if (shards.length === 0) await rm(aside, { recursive: true, force: true });
    },
  };
}

/** The shards of an earlier start that made the same choice; anything else is removed. */
async function resume(aside: string, head: string): Promise<Shard[]> {
  const text = await readFile(join(aside, JOURNAL), 'utf8').catch(() => '');
  const [first, ...lines] = text.split('\n');
  if (first === head && text.includes('\n')) {
    const shards: Shard[] = [];
    // A torn last line is a shard that is made again.
    for (const line of lines.slice(0, -1)) shards.push(Shard.parse(JSON.parse(line)));
    await removeOthers(aside, [JOURNAL, ...shards.map(({ file }) => file)]);
    await replaceIn(aside, JOURNAL, [head, ...shards.map((shard) => JSON.stringify(shard)), ''].join('\n'));
    return shards;
  }
  await rm(aside, { recursive: true, force: true });
  await mkdir(aside);
  await appendFile(join(aside, JOURNAL), `${head}\n`);
  return [];
}

/** The name beside it is fixed, so that what a kill leaves of it is replaced, and never becomes a file of the export. */
const replaceIn = (folder: string, name: string, content: string): Promise<void> =>
  replaceFile(join(folder, name), content, { aside: join(folder, `${name}.part`) });

/** A shard of which the journal does not tell, and what was half written. */
async function removeOthers(folder: string, keep: readonly string[]): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!keep.includes(name)) await rm(join(folder, name), { recursive: true, force: true });
  }
}
