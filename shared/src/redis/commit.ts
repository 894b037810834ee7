/** Commits results exactly once: the first result of a rollout wins and is counted in the same step (lua/commit.lua). */
import { SwefarmError, withoutMiddle } from '../failures/errors.ts';
import { MODEL_LIMIT, OTHER_MODELS, VERSION_WINDOW } from '../metrics/outcomes.ts';
import type { RunRecord } from '../records/job.ts';
import { readRecord } from '../records/parse.ts';
import { type Outcome, outcomeOf, Result } from '../records/result.ts';
import { keyOfArtifact } from './artifacts.ts';
import { costsOf, countersOf, isRefillable, isUsable } from './counters.ts';
import { historyKey, historyNote } from './history.ts';
import type { Store } from './part.ts';
import { passesName } from './passes.ts';
import { loadScript } from './script.ts';

export type CommitReply =
  | { status: 'committed'; stream_id: string }
  /** Another attempt committed first. */
  | { status: 'late'; attempt: number; outcome: Outcome }
  /** Redis lost the artifact: nothing was written. */
  | { status: 'artifact_lost' }
  /** The run was removed or has expired: nothing was written. */
  | { status: 'gone' };

type CommitRun = Pick<
  RunRecord,
  'kind' | 'agent' | 'ttl' | 'open' | 'policy' | 'group_size' | 'min_group' | 'oversample' | 'refills'
>;

const AIM_BYTES = 1024;
const LIMIT_BYTES = 4096;
/** Maximum number of characters of a policy version in a key and a label. */
const VERSION_LENGTH = 64;
/** Maximum numbers of characters of the failure message in a large result; the second applies if the first is not enough. */
const MESSAGE_LENGTHS = [512, 80];

/**
 * Returns the function that commits a result. The attempt that won gets `committed` again for every repetition.
 * @throws SwefarmError `result_too_large` above 4 KB, `result_invalid` for a result that readers would refuse; both are bugs
 */
export function createCommit({ redis, keys }: Store) {
  const script = loadScript(redis, 'group_end', 'history', 'commit');
  return async (run: CommitRun, result: Result): Promise<CommitReply> => {
    const version = result.policy_version?.slice(0, VERSION_LENGTH) ?? '';
    const text = encodeResult(result);
    refuseUnreadable(result, text);
    const costs = costsOf(result, run.policy);
    const by = signature(result.worker, result.claim);
    const reply = (await script(keysOf(keys, run, result, version), [
      result.rollout_id,
      result.attempt,
      result.outcome,
      by,
      text,
      result.instance_id,
      isUsable(result) ? 1 : 0,
      run.ttl,
      version,
      VERSION_WINDOW,
      enoughOf(run),
      isRefillable(result) && !run.open ? run.refills : 0,
      costs?.model ?? '',
      MODEL_LIMIT,
      OTHER_MODELS,
      costs?.counters.length ?? 0,
      historyNote(result),
      ...(costs?.counters.flat() ?? []),
      ...countersOf(result).flat(),
    ])) as string[];
    const [status, first = '', outcome, streamId = '', winner] = reply;
    if (status === 'gone' || status === 'artifact_lost') return { status };
    if (status === 'committed') return { status, stream_id: first };
    // ioredis sends a command again after a broken connection, so this attempt may have committed already.
    if (Number(first) === result.attempt && winner === by) {
      return { status: 'committed', stream_id: streamId };
    }
    return { status: 'late', attempt: Number(first), outcome: outcomeOf(outcome) };
  };
}

/** Returns the number of usable results that ends a group; 0: never, as in open runs, where each rollout has a caller. */
const enoughOf = (run: CommitRun): number =>
  run.open ? 0 : (run.min_group ?? (run.oversample > 0 ? run.group_size : 0));

/** Returns the keys of commit.lua, in its order. */
function keysOf(keys: Store['keys'], run: CommitRun, result: Result, version: string): string[] {
  const of = keys.run(result.run_id);
  return [
    of.record,
    of.committed,
    of.results,
    of.groups,
    of.counts,
    keys.totals(run.kind),
    keys.versions(run.kind),
    keys.versionTotals(run.kind, version),
    of.journal,
    of.cancelled,
    keys.cancelEpoch,
    (result.artifact && keyOfArtifact(keys, result.artifact)) ?? of.record,
    passesKey(keys, run, result) ?? of.record,
    of.ends,
    of.draws,
    historyKey(keys, run.agent),
    ...[of.instances, of.patches, of.appended, of.paused, of.verdicts],
  ];
}

/**
 * Returns the key of the pass rates that a result changes; null: the rollout uses no policy, no worker read its instance, or it is a
 * branch, whose shared turns change its chance of success.
 */
const passesKey = (
  keys: Store['keys'],
  { policy }: CommitRun,
  { family, branch_of }: Result,
): string | null =>
  policy && family !== undefined && !branch_of ? keys.passes(passesName(policy), family) : null;

/** Throws for a result that readers would refuse, because entries of the stream cannot be changed. */
function refuseUnreadable({ rollout_id }: Result, text: string): void {
  const read = readRecord(Result, text);
  if ('value' in read) return;
  throw new SwefarmError('result_invalid', `unreadable result of ${rollout_id}: ${read.problem}`);
}

/** Encodes a result for the stream. Numbers are rounded; above 1 KB the failure message is shortened. */
export function encodeResult(result: Result): string {
  let text = encode(result);
  if (Buffer.byteLength(text) <= AIM_BYTES) return text;
  const { failure } = result;
  if (failure) {
    for (const most of MESSAGE_LENGTHS) {
      text = encode({ ...result, failure: { ...failure, message: withoutMiddle(failure.message, most) } });
      if (Buffer.byteLength(text) <= LIMIT_BYTES) break;
    }
  }
  const bytes = Buffer.byteLength(text);
  if (bytes <= LIMIT_BYTES) return text;
  throw new SwefarmError('result_too_large', `the result of ${result.rollout_id} has ${bytes} bytes`);
}

const encode = (result: Result): string =>
  JSON.stringify(result, (_key, value) =>
    typeof value === 'number' && !Number.isInteger(value) ? Math.round(value * 1e4) / 1e4 : value,
  );

/** Parses the entry of a committed rollout: `attempt outcome stream-id worker TAB claim`. */
export function parseCommitted(entry: string) {
  const [attempt = '', outcome = '', stream_id = '', ...rest] = entry.split(' ');
  const [worker = '', claim = ''] = rest.join(' ').split('\t');
  return { attempt: Number(attempt), outcome: outcomeOf(outcome), stream_id, worker, claim };
}

/** Returns the end of the entry of a committed rollout, which identifies the attempt that committed. */
export const signature = (worker: string, claim = ''): string => `${worker}\t${claim}`;
