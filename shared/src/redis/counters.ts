import { FAILURES } from '../failures/failure.ts';
import { type FamilyEnd, ROLLOUT_BUCKETS, TURN_BUCKETS } from '../metrics/outcomes.ts';
import { costOf } from '../records/price.ts';
import type { Result } from '../records/result.ts';
import type { PolicyConfig } from '../records/runconfig.ts';
import { successOf } from '../records/success.ts';

/**
 * Returns the increments of a result; metrics/totals.ts reads the counters. `…_in:<bound>` is one bucket of a histogram, not cumulative.
 * `turns_…` counts only judged rollouts. commit.lua adds `attempt:<class>` of earlier attempts, `groups:<end>` and `refills`.
 */
export function countersOf(result: Result): [counter: string, increment: number][] {
  const { outcome, facts, failure } = result;
  const counters: [string, number][] = [
    ['committed', 1],
    [`outcome:${outcome}`, 1],
    ['attempts', result.attempt],
    [`attempt:${attemptEnd(result)}`, 1],
    ['prompt_tokens', result.tokens.prompt],
    ['completion_tokens', result.tokens.completion],
    ['answers', result.turns],
    ['total_sum', result.seconds.total],
    [`total_in:${bucketOf(result.seconds.total, ROLLOUT_BUCKETS)}`, 1],
  ];
  for (const [stage, seconds] of Object.entries(result.seconds)) {
    if (stage !== 'total') counters.push([`seconds:${stage}`, seconds ?? 0]);
  }
  if (successOf(result) === true) counters.push(['resolved', 1]);
  if (result.reward !== null) {
    counters.push(['rewarded', 1], ['reward_sum', result.reward]);
    if (result.resolved === null) counters.push(['scored', 1]);
    for (const [part, value] of Object.entries(result.reward_parts ?? {}))
      counters.push([`part:${part}`, value], [`part_known:${part}`, 1]);
  }
  if (result.family !== undefined) counters.push([`family:${result.family}:${endOf(result)}`, 1]);
  if (result.exit_status !== null) counters.push([`exit:${result.exit_status}`, 1]);
  const { unread_calls: unread } = result;
  if (unread !== undefined) counters.push([`unread:${unread.marker}`, unread.answers]);
  if (failure !== null) counters.push([`failure:${failure.class}`, 1]);
  if (facts !== null) counters.push([`evaluation:${facts.evaluation}`, 1]);
  if (outcome === 'cancelled') counters.push([`cancelled:${result.reward_row}`, 1]);
  if (outcome === 'judged') {
    counters.push(['turns_sum', result.turns], [`turns_in:${bucketOf(result.turns, TURN_BUCKETS)}`, 1]);
    if (facts !== null) counters.push([`trust:${facts.trust}`, 1]);
  }
  return counters.filter(([, increment]) => increment !== 0);
}

/** Maximum number of characters of a model's name in a counter and a label. */
const MODEL_LENGTH = 100;

/** Returns the increments of the counters `COUNTER:MODEL`; null if the run has no price. `commit.lua` limits the number of models. */
export function costsOf(
  result: Result,
  policy: Pick<PolicyConfig, 'model' | 'price'> | null,
): { model: string; counters: [counter: string, increment: number][] } | null {
  if (policy?.price === undefined) return null;
  return {
    model: policy.model.slice(0, MODEL_LENGTH),
    counters: [
      ['cost', costOf(result.tokens, policy.price)],
      ['priced', 1],
      ['priced_resolved', successOf(result) === true ? 1 : 0],
    ],
  };
}

function endOf(result: Result): FamilyEnd {
  if (result.outcome !== 'judged') return result.outcome;
  if (result.resolved !== null) return successOf(result) ? 'resolved' : 'unresolved';
  return result.reward === null ? 'ungraded' : 'scored';
}

/** Returns how an attempt ended. `parked`: too many workers were lost before, so this attempt ran nothing and is not a crash. */
function attemptEnd({ failure }: Result): string {
  if (failure === null) return 'done';
  return failure.class === 'lost' ? 'parked' : failure.class;
}

const bucketOf = (value: number, bounds: readonly number[]): string =>
  String(bounds.find((bound) => value <= bound) ?? '+Inf');

export const isUsable = (result: Result): boolean => result.outcome === 'judged' && result.reward !== null;

/** Returns whether another rollout may replace a failed rollout. Rollouts that failed after repeated losses of workers are not replaced. */
export const isRefillable = ({ failure }: Result): boolean =>
  failure !== null && failure.class !== 'lost' && FAILURES[failure.class].retryable;
