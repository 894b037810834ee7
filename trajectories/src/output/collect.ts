/** Copies the result stream of a run into an output: every rollout exactly once, even if a process dies during the copy. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ArtifactContent,
  decodeArtifact,
  describeUnreadable,
  errorMessage,
  exponentialBackoff,
  type Farm,
  type Result,
  type ResultBatch,
  replaceFile,
  retry,
  SwefarmError,
  type UnreadableResult,
  UnusableError,
} from '@swefarm/shared';
import { type CollectionMark, type OutputLine, outputLine } from './line.ts';
import type { Output } from './output.ts';

export type CollectOptions = {
  runId: string;
  /** Ids of all rollouts of the run; collecting ends when the output contains each rollout whose result is readable. */
  rollouts: ReadonlySet<string>;
  /** Whether the farm may add rollouts to replace lost ones. */
  growing?: boolean;
  output: Output;
  /** Called before each batch: queues more rollouts and returns their ids. */
  feed?: (() => Promise<readonly string[]>) | undefined;
  mark?: ((result: Result) => CollectionMark) | undefined;
  /** Folder for copies of the artifacts; undefined: no copies. */
  copyArtifactsTo?: string | undefined;
  /** Maximum wait for an unreachable Redis or artifact store, in milliseconds. */
  patienceMs?: number;
  /** Called with each result, and awaited before the line is written. `content` is null if no artifact is stored. */
  onResult?: ((result: Result, content: ArtifactContent | null) => Promise<void>) | undefined;
  onLine?: (line: OutputLine) => void;
  onWarning?: (text: string) => void;
  /** Signal that ends collecting after the existing results are written. */
  signal?: AbortSignal;
};

const BLOCK_MS = 2_000;
const BATCH = 200;
/** Maximum number of artifacts that are fetched concurrently. */
const FETCHES = 8;
/** Interval of the check that the run still exists, in milliseconds without new results. */
const GONE_CHECK_MS = 10_000;
const PATIENCE_MS = 60_000;

export type Collected = {
  /** False when `signal` ended collecting before all results were written. */
  complete: boolean;
  /** Results that the output lacks because they cannot be read. A later `--resume` reads them again. */
  unreadable: UnreadableResult[];
};

/**
 * Collects until the output has all rollouts whose results can be read.
 *
 * @throws UnusableError `redis_unreachable` after `patienceMs`, `run_gone` when Redis lost the run, `output_unwritable`
 */
export async function collect(farm: Farm, options: CollectOptions): Promise<Collected> {
  const { runId, output, signal } = options;
  const reading = { farm, patienceMs: PATIENCE_MS, ...options };
  const wanted = new Set(options.rollouts);
  const unreadable = new Map<string, UnreadableResult>();
  const skipped = new Set<string | null>();
  const isDone = (id: string): boolean => output.lines.has(id) || skipped.has(id);
  const isComplete = async (): Promise<boolean> => {
    if (options.feed && signal?.aborted !== true) for (const id of await options.feed()) wanted.add(id);
    if (![...wanted].every(isDone)) return false;
    if (!options.growing) return true;
    // Redis replaces a lost rollout in one step, so a reader that has the result of the lost rollout also finds the new rollout.
    const all = await withPatience(reading, () => farm.groups.rollouts(runId));
    for (const id of all) wanted.add(id);
    return all.every(isDone);
  };
  const skip = (entries: readonly UnreadableResult[]): void => {
    for (const entry of entries) {
      skipped.add(entry.rollout_id);
      if (!unreadable.has(entry.stream_id)) options.onWarning?.(describeUnreadable(entry));
      unreadable.set(entry.stream_id, entry);
    }
  };
  if (options.copyArtifactsTo !== undefined) await mkdir(options.copyArtifactsTo, { recursive: true });
  let cursor = await startingPoint(reading);
  let newsAt = Date.now();
  while (!(await isComplete())) {
    // After the signal, this loop still writes the existing results.
    const stopping = signal?.aborted === true;
    const batch = await readBatch(reading, cursor);
    skip(batch.unreadable);
    const news = batch.results.length + batch.unreadable.length;
    if (stopping && news === 0) return { complete: false, unreadable: [...unreadable.values()] };
    const fresh = dropKnown(batch.results, output);
    for (let at = 0; at < fresh.length; at += FETCHES) {
      const part = fresh.slice(at, at + FETCHES);
      const lines = await Promise.all(part.map(({ result }) => lineOf(reading, result)));
      await output.append(lines, part.at(-1)?.stream_id ?? cursor);
      for (const line of lines) options.onLine?.(line);
    }
    if (news > 0) {
      // Known results were dropped from `fresh`, but they advance the cursor too.
      cursor = batch.last_id;
      await output.append([], cursor);
      newsAt = Date.now();
    } else if (Date.now() - newsAt > GONE_CHECK_MS) {
      await checkRunExists(reading);
      newsAt = Date.now();
    }
  }
  return { complete: true, unreadable: [...unreadable.values()] };
}

type Reading = CollectOptions & { farm: Farm; patienceMs: number };

/** Returns the cursor of the output. If the output lacks committed results (a file was deleted), returns the start of the stream. */
async function startingPoint(reading: Reading): Promise<string> {
  const { farm, output, runId } = reading;
  if (output.cursor === '0') return '0';
  const committed = await withPatience(reading, () => farm.results.committedIds(runId));
  return [...committed].every((id) => output.lines.has(id)) ? output.cursor : '0';
}

async function readBatch({ farm, runId, signal, patienceMs }: Reading, cursor: string): Promise<ResultBatch> {
  const waiting = signal?.aborted
    ? { blockMs: 0, patienceMs: 0 }
    : { blockMs: BLOCK_MS, patienceMs, ...(signal && { signal }) };
  try {
    return await farm.results.read(runId, cursor, { count: BATCH, ...waiting });
  } catch (error) {
    // The signal arrived during the wait; the next iteration reads existing results.
    if (signal?.aborted && !(error instanceof UnusableError))
      return { results: [], unreadable: [], last_id: cursor };
    throw error;
  }
}

/** Returns the results that the output lacks, one for each rollout. After a restart from an older cursor, known results come again. */
function dropKnown(results: ResultBatch['results'], output: Output): ResultBatch['results'] {
  const fresh = results.filter(({ result }) => !output.lines.has(result.rollout_id));
  return [...Map.groupBy(fresh, ({ result }) => result.rollout_id).values()].flatMap((same) =>
    same.slice(0, 1),
  );
}

async function lineOf(reading: Reading, result: Result): Promise<OutputLine> {
  const { copyArtifactsTo: folder, output } = reading;
  const blob = result.artifact === null ? null : await fetchArtifact(reading, result, result.artifact);
  const content = blob && (await readable(reading, result, blob));
  const copy = folder === undefined ? undefined : join(folder, `${result.rollout_id}.json.gz`);
  if (blob !== null && copy !== undefined) await replaceFile(copy, blob, { aside: `${copy}.new` });
  await reading.onResult?.(result, content);
  output.take?.(result, content);
  return outputLine(result, {
    mark: reading.mark?.(result),
    patch: content?.patch ?? null,
    report: content?.report ?? null,
    sampling: content?.trajectory?.sampling ?? null,
    artifact_file: blob === null ? undefined : copy,
  });
}

async function fetchArtifact(reading: Reading, result: Result, locator: string): Promise<Buffer | null> {
  try {
    return await withPatience(reading, () => reading.farm.artifacts.get(locator));
  } catch (error) {
    if (!(error instanceof SwefarmError) || error.retryable) throw error;
    // A result without its trajectory is still written, because the result contains the verdict.
    reading.onWarning?.(`${result.rollout_id}: artifact ${locator} cannot be read: ${errorMessage(error)}`);
    return null;
  }
}

async function readable(reading: Reading, result: Result, blob: Buffer): Promise<ArtifactContent | null> {
  try {
    return await decodeArtifact(blob);
  } catch (error) {
    if (!(error instanceof SwefarmError)) throw error;
    reading.onWarning?.(`${result.rollout_id}: ${errorMessage(error)}`);
    return null;
  }
}

async function checkRunExists({ farm, runId, patienceMs }: Reading): Promise<void> {
  if (await withPatience({ patienceMs }, () => farm.runs.exists(runId))) return;
  throw new UnusableError(
    'run_gone',
    `run ${runId} is gone from Redis (${farm.address}): it expired, was removed, or Redis lost its data; ` +
      'collected results are in the output; --resume of the submit queues the rest again',
  );
}

/** Repeats a read while Redis or the artifact store is unreachable; the read must be idempotent. */
const withPatience = <T>(
  { patienceMs, signal }: Pick<Reading, 'patienceMs' | 'signal'>,
  read: () => Promise<T>,
): Promise<T> =>
  retry(read, {
    pauseMs: exponentialBackoff(100, 2_000),
    withinMs: patienceMs,
    isPassing: (error) =>
      error instanceof SwefarmError &&
      (error.code === 'redis_unreachable' || error.code === 'artifact_store') &&
      !signal?.aborted,
  });
