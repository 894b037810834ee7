/** Fetches the files of a dataset into a folder, and records beside them where they are from and their checksums. */
import { join, matchesGlob } from 'node:path';
import { errorMessage, replaceFile, SwefarmError, UnusableError, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { download, hashFile } from './download.ts';
import { contentUrl, type DatasetName, type HubAddress, type HubFile, readCommit } from './hub.ts';

export const FETCH_RECORD = 'swefarm-dataset.json';

/** Written beside the files. */
export const FetchRecord = z.object({
  format: z.literal('swefarm-dataset-1'),
  name: z.string(),
  /** As it was asked for. */
  revision: z.string(),
  commit: z.string(),
  hub: z.string(),
  fetched_at: z.string(),
  files: z.array(z.object({ path: z.string(), size: z.number(), sha256: z.string() })),
});
export type FetchRecord = z.infer<typeof FetchRecord>;

export type FetchTask = {
  hub: HubAddress;
  dataset: DatasetName;
  folder: string;
  /** Paths or globs; empty: rows and what is said about them. */
  files: readonly string[];
  /** Where a file goes; default: its path below the folder. */
  targetOf?: (path: string) => string;
  signal: AbortSignal;
  onNote: (text: string) => void;
};

/** Rows, and the pages that say what they are and under which licence. */
const USUAL = [
  '**/*.parquet',
  '**/*.jsonl',
  '**/*.json',
  '**/*.jsonl.gz',
  '**/*.json.gz',
  '**/README*',
  '**/LICENSE*',
];

/**
 * Files that are there already, with the checksum of the hub, are not asked for again.
 *
 * @throws UsageError for a name, a revision or files that the hub has not; UnusableError naming what to copy where when it is out of reach
 */
export async function fetchDataset(task: FetchTask): Promise<FetchRecord> {
  const { hub, dataset, folder, signal } = task;
  try {
    const { commit, files } = await readCommit(hub, dataset, signal);
    const wanted = chosenFiles(dataset, files, task.files);
    const fetched: FetchRecord['files'] = [];
    for (const file of wanted) {
      const target = task.targetOf?.(file.path) ?? join(folder, file.path);
      const sha256 = await alreadyThere(target, file);
      if (sha256 !== null) task.onNote(`${file.path}: is there already`);
      else task.onNote(`${file.path}: ${file.size} bytes`);
      const url = contentUrl(hub, dataset, commit, file.path);
      fetched.push({
        path: file.path,
        size: file.size,
        sha256: sha256 ?? (await download({ hub, url, file, commit, target, signal, onNote: task.onNote })),
      });
      const record = recordOf(task, commit, fetched);
      // After each file, so that a fetch that is killed knows what it has.
      await replaceFile(join(folder, FETCH_RECORD), `${JSON.stringify(record, null, 2)}\n`, { sync: true });
    }
    return recordOf(task, commit, fetched);
  } catch (error) {
    throw withRemedy(error, task);
  }
}

const recordOf = ({ dataset, hub }: FetchTask, commit: string, files: FetchRecord['files']): FetchRecord => ({
  format: 'swefarm-dataset-1',
  ...dataset,
  commit,
  hub: hub.url,
  fetched_at: new Date().toISOString(),
  files: [...files],
});

function chosenFiles(dataset: DatasetName, files: readonly HubFile[], given: readonly string[]): HubFile[] {
  const patterns = given.length > 0 ? given : USUAL;
  const missing = given.filter((pattern) => !files.some(({ path }) => isMatch(path, pattern)));
  const chosen = files.filter(({ path }) => patterns.some((pattern) => isMatch(path, pattern)));
  if (missing.length === 0 && chosen.length > 0) return chosen;
  const there = files.slice(0, SHOWN).map(({ path }) => path);
  throw new UsageError(
    `${dataset.name}@${dataset.revision} has no file ${missing.join(', ') || 'of rows'}; it has ${there.join(', ')}${files.length > SHOWN ? ', …' : ''}`,
  );
}
const SHOWN = 20;

const isMatch = (path: string, pattern: string): boolean => path === pattern || matchesGlob(path, pattern);

async function alreadyThere(target: string, file: HubFile): Promise<string | null> {
  try {
    const found = await hashFile(target);
    const right = file.checksum.kind === 'sha256' ? found.sha256 : found.git;
    if (found.size === file.size && right === file.checksum.value) return found.sha256;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  return null;
}

function withRemedy(error: unknown, { hub, dataset, folder, files }: FetchTask): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOSPC') {
    return new UnusableError(
      'output_unwritable',
      `${folder}: the disk is full: free some space, and fetch again; what is there stays`,
      { cause: error },
    );
  }
  if (error instanceof z.ZodError) {
    return new UnusableError(
      'hub_answer',
      `${hub.url} does not speak the routes of a hub (${errorMessage(error)}); check hub_url`,
      { cause: error },
    );
  }
  if (!(error instanceof SwefarmError) || error.code !== 'hub_unreachable') return error;
  const options = files.map((file) => ` --file '${file}'`).join('');
  return new UnusableError(
    'hub_unreachable',
    [
      errorMessage(error),
      'without a network: on a machine that reaches the hub, run',
      `  swefarm dataset fetch ${dataset.name}@${dataset.revision} --output-dir DIR${options}`,
      `or download the files of ${hub.url}/datasets/${dataset.name}/tree/${dataset.revision}; copy them to ${folder}, and name one with --dataset ${join(folder, 'FILE')}`,
      'or set a mirror that can be reached here: hub_url (SWEFARM_HUB_URL, HF_ENDPOINT)',
    ].join('\n'),
    { cause: error },
  );
}
