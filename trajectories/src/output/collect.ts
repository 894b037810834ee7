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
  /** Ids of all rollouts of the run; collecting ends when the output contains all of them. */
  rollouts: ReadonlySet<string>;
  /** Whether the farm may add rollouts to replace lost ones. */
  growing?: boolean;
  output: Output;
  /** Called before each batch: queues more rollouts and returns their ids. */
  feed?: (() => Promise<readonly string[]>) | undefined;
  mark?: ((result: Result) => CollectionMark) | undefined;
  /** Folder for copies of the artifacts; undefined: no copies. */
  copyArtifactsTo?: string | undefined;
  /** Maximum wait for an unreachable Redis, in milliseconds. */
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
  const { runId, rollouts, output, signal } = options;
  const patienceMs = options.patienceMs ?? PATIENCE_MS;
  const wanted = new Set(rollouts);
  const unreadable = new Map<string, UnreadableResult>();
  const skipped = new Set<string | null>();
  const isDone = (id: string): boolean => output.lines.has(id) || skipped.has(id);
  const isComplete = async (): Promise<boolean> => {
    if (options.feed && signal?.aborted !== true) for (const id of await options.feed()) wanted.add(id);
    if (![...wanted].every(isDone)) return false;
    if (!options.growing) return true;
    // Redis replaces a lost rollout in one step, so a reader that has the result of the lost rollout also finds the new rollout.
    const all = await withPatience(() => farm.groups.rollouts(runId), patienceMs, signal);
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
  let cursor = await startingPoint(farm, options, patienceMs);
  let newsAt = Date.now();
  while (!(await isComplete())) {
    // After the signal, this loop still writes the existing results.
    const stopping = signal?.aborted === true;
    const batch = await readBatch(farm, options, cursor, stopping ? 0 : BLOCK_MS, stopping ? 0 : patienceMs);
    skip(batch.unreadable);
    const news = batch.results.length + batch.unreadable.length;
    if (stopping && news === 0) return { complete: false, unreadable: [...unreadable.values()] };
    const fresh = dropKnown(batch.results, output);
    for (let at = 0; at < fresh.length; at += FETCHES) {
      const part = fresh.slice(at, at + FETCHES);
      const lines = await Promise.all(part.map(({ result }) => lineOf(farm, result, options, patienceMs)));
      await output.append(lines, part.at(-1)?.stream_id ?? cursor);
      for (const line of lines) options.onLine?.(line);
    }
    if (news > 0) {
      // Known results were dropped from `fresh`, but they advance the cursor too.
      cursor = batch.last_id;
      await output.append([], cursor);
      newsAt = Date.now();
    } else if (Date.now() - newsAt > GONE_CHECK_MS) {
      await checkRunExists(farm, runId, patienceMs);
      newsAt = Date.now();
    }
  }
  return { complete: true, unreadable: [...unreadable.values()] };
}

/** Returns the cursor of the output. If the output lacks committed results (a file was deleted), returns the start of the stream. */
async function startingPoint(farm: Farm, options: CollectOptions, patienceMs: number): Promise<string> {
  const { output, runId, signal } = options;
  if (output.cursor === '0') return '0';
  const committed = await withPatience(() => farm.results.committedIds(runId), patienceMs, signal);
  return [...committed].every((id) => output.lines.has(id)) ? output.cursor : '0';
}

async function readBatch(
  farm: Farm,
  { runId, signal }: CollectOptions,
  cursor: string,
  blockMs: number,
  patienceMs: number,
): Promise<ResultBatch> {
  const nothing = { results: [], unreadable: [], last_id: cursor };
  try {
    const waiting = signal && !signal.aborted ? { signal } : {};
    return await farm.results.read(runId, cursor, { count: BATCH, blockMs, patienceMs, ...waiting });
  } catch (error) {
    // The signal arrived during the wait; the next iteration reads existing results.
    if (signal?.aborted && !(error instanceof UnusableError)) return nothing;
    throw error;
  }
}

/** Returns the results that the output lacks. After a restart from an older cursor, the stream delivers some results again. */
function dropKnown(
  results: readonly { stream_id: string; result: Result }[],
  output: Output,
): { stream_id: string; result: Result }[] {
  const seen = new Set<string>();
  return results.filter(({ result }) => {
    if (output.lines.has(result.rollout_id) || seen.has(result.rollout_id)) return false;
    seen.add(result.rollout_id);
    return true;
  });
}

async function lineOf(
  farm: Farm,
  result: Result,
  options: CollectOptions,
  patienceMs: number,
): Promise<OutputLine> {
  const blob = result.artifact === null ? null : await fetchArtifact(farm, result, options, patienceMs);
  const content = blob && (await readable(blob, result, options));
  const folder = options.copyArtifactsTo;
  const copy = blob === null || folder === undefined ? undefined : join(folder, copyName(result));
  if (blob !== null && copy !== undefined) await replaceFile(copy, blob, { aside: `${copy}.new` });
  await options.onResult?.(result, content);
  options.output.take?.(result, content);
  return outputLine(result, {
    mark: options.mark?.(result),
    patch: content?.patch ?? null,
    report: content?.report ?? null,
    sampling: content?.trajectory?.sampling ?? null,
    artifact_file: copy,
  });
}

const copyName = (result: Result): string => `${result.rollout_id}.json.gz`;

async function fetchArtifact(
  farm: Farm,
  result: Result,
  options: CollectOptions,
  patienceMs: number,
): Promise<Buffer | null> {
  const locator = result.artifact ?? '';
  try {
    return await withPatience(() => farm.artifacts.get(locator), patienceMs, options.signal);
  } catch (error) {
    if (!(error instanceof SwefarmError) || error.retryable) throw error;
    // A result without its trajectory is still written, because the result contains the verdict.
    options.onWarning?.(`${result.rollout_id}: artifact ${locator} cannot be read: ${errorMessage(error)}`);
    return null;
  }
}

async function readable(
  blob: Buffer,
  result: Result,
  options: CollectOptions,
): Promise<ArtifactContent | null> {
  try {
    return await decodeArtifact(blob);
  } catch (error) {
    if (!(error instanceof SwefarmError)) throw error;
    options.onWarning?.(`${result.rollout_id}: ${errorMessage(error)}`);
    return null;
  }
}

async function checkRunExists(farm: Farm, runId: string, patienceMs: number): Promise<void> {
  if (await withPatience(() => farm.runs.exists(runId), patienceMs)) return;
  throw new UnusableError(
    'run_gone',
    `run ${runId} is gone from Redis (${farm.address}): it expired, was removed, or Redis lost its data; ` +
      'collected results are in the output; --resume of the submit queues the rest again',
  );
}

/** Repeats a read while Redis is unreachable; the read must be idempotent. */
async function withPatience<T>(read: () => Promise<T>, patienceMs: number, signal?: AbortSignal): Promise<T> {
  return await retry(read, {
    pauseMs: exponentialBackoff(100, 2_000),
    withinMs: patienceMs,
    isPassing: (error) => isTransient(error) && !signal?.aborted,
  });
}

/** Returns whether a read may be repeated after the error; every outage has one of these two codes. */
const isTransient = (error: unknown): boolean =>
  error instanceof SwefarmError && (error.code === 'redis_unreachable' || error.code === 'artifact_store');
