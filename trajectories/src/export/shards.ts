/** Writes a folder of data files (shards). After a kill, the same command continues after the complete shards. */
import { appendFile, mkdir, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@swefarm/shared';
import { z } from 'zod';
import { writing } from '../output/appendfile.ts';
import { asideOf, requireNewPath } from './aside.ts';
import type { ExportRequest } from './format.ts';

const Shard = z.object({ file: z.string(), rows: z.number().int(), rollouts: z.array(z.string()) });
type Shard = z.infer<typeof Shard>;

export interface ShardFolder extends AsyncDisposable {
  readonly written: ReadonlySet<string>;
  /** Returns the path to which the caller writes the next shard. */
  next(): string;
  /** Marks the file at `next()` as a complete shard. `rollouts` lists the ids of all rollouts in the file. */
  add(rows: number, rollouts: readonly string[]): Promise<void>;
  finish(facts: Readonly<Record<string, unknown>>): Promise<void>;
}

/** File with one line for each complete shard. */
const JOURNAL = 'shards.jsonl';
/** Begins with an underscore, because readers of table folders ignore names that begin with an underscore. */
const MANIFEST = '_manifest.json';

/** Opens or continues the folder. Throws the errors of {@link requireNewPath}; the methods throw UnusableError `output_unwritable`. */
export async function openShards(
  { path, form, fingerprint }: ExportRequest,
  ending: string,
): Promise<ShardFolder> {
  await requireNewPath(path);
  const aside = asideOf(path);
  const head = JSON.stringify({ form, fingerprint });
  const shards = await writing(path, () => resume(aside, head));
  const written = new Set(shards.flatMap(({ rollouts }) => rollouts));
  const nameOf = (at: number): string => `shard-${String(at).padStart(5, '0')}.${ending}`;
  const next = (): string => join(aside, `${nameOf(shards.length)}.part`);
  let whole = false;
  return {
    written,
    next,
    add: (rows, rollouts) =>
      writing(path, async () => {
        const shard = { file: nameOf(shards.length), rows, rollouts: [...new Set(rollouts)] };
        await rename(next(), join(aside, shard.file));
        await appendFile(join(aside, JOURNAL), `${JSON.stringify(shard)}\n`);
        shards.push(shard);
        for (const id of shard.rollouts) written.add(id);
      }),
    finish: (facts) =>
      writing(path, async () => {
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

/** Returns the shards of an earlier start with the same selection and removes all other files. */
async function resume(aside: string, head: string): Promise<Shard[]> {
  const text = await readFile(join(aside, JOURNAL), 'utf8').catch(() => '');
  const [first, ...lines] = text.split('\n');
  if (first === head && text.includes('\n')) {
    const shards: Shard[] = [];
    // The last line may be incomplete after a kill. Its shard is written again.
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

/** The temporary name is fixed, so that the next start overwrites the file of an interrupted write. */
const replaceIn = (folder: string, name: string, content: string): Promise<void> =>
  replaceFile(join(folder, name), content, { aside: join(folder, `${name}.part`) });

async function removeOthers(folder: string, known: readonly string[]): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!known.includes(name)) await rm(join(folder, name), { recursive: true, force: true });
  }
}
