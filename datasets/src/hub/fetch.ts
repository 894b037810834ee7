/** Fetches the files of a dataset into a folder, and records their source and checksums in `swefarm-dataset.json`. */
import { join, matchesGlob } from 'node:path';
import { errorMessage, replaceFile, SwefarmError, UnusableError, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { checkFile, download } from './download.ts';
import { contentUrl, type DatasetName, type HubAddress, type HubFile, readCommit } from './hub.ts';

export const FETCH_RECORD = 'swefarm-dataset.json';

export const FetchRecord = z.object({
  format: z.literal('swefarm-dataset-1'),
  name: z.string(),
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
  /** Paths or globs of the files to fetch; empty: the files of `USUAL`. */
  files: readonly string[];
  /** Maps the path of a file on the hub to its local path; default: the same path below `folder`. */
  targetOf?: (path: string) => string;
  signal: AbortSignal;
  onNote: (text: string) => void;
};

/** Files that are fetched by default: rows, documentation and licence. */
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
 * Downloads the files that are missing, or differ from the checksum of the hub.
 *
 * @throws UsageError for a name, a revision or files that the hub lacks; UnusableError with instructions if the hub is unreachable
 */
export async function fetchDataset(task: FetchTask): Promise<FetchRecord> {
  const { hub, dataset, folder, signal } = task;
  try {
    const { commit, files } = await readCommit(hub, dataset, signal);
    const fetched: FetchRecord['files'] = [];
    for (const file of chosenFiles(dataset, files, task.files)) {
      const target = task.targetOf?.(file.path) ?? join(folder, file.path);
      const sha256 = await alreadyThere(target, file);
      task.onNote(`${file.path}: ${sha256 === null ? `${file.size} bytes` : 'is there already'}`);
      const url = contentUrl(hub, dataset, commit, file.path);
      fetched.push({
        path: file.path,
        size: file.size,
        sha256: sha256 ?? (await download({ hub, url, file, commit, target, signal, onNote: task.onNote })),
      });
      const record = recordOf(task, commit, fetched);
      // The record is written after each file, so that it is valid after an interruption.
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
    const found = await checkFile(target, file);
    if (found.right) return found.sha256;
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
      `${folder}: the disk is full: free some space, and fetch again; complete files are not fetched again`,
      { cause: error },
    );
  }
  if (error instanceof z.ZodError) {
    return new UnusableError(
      'hub_answer',
      `${hub.url} does not answer as a hub (${errorMessage(error)}); check hub_url`,
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
