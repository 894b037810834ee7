/** What one result adds to the counters of its run, its kind and its policy version: plain sums, so that Lua only adds. */

import { FAILURES } from '../failures/failure.ts';
import { type FamilyEnd, ROLLOUT_BUCKETS, TURN_BUCKETS } from '../metrics/outcomes.ts';
import { costOf } from '../records/price.ts';
import type { Result } from '../records/result.ts';
import type { PolicyConfig } from '../records/runconfig.ts';
import { successOf } from '../records/success.ts';

/**
 * Names of counters are read back by metrics/totals.ts. `…_in:<bound>` counts one bucket of a histogram, not cumulative.
 * Turns are counted over judged rollouts only: a failed one says nothing about the agent. What only Redis knows in that
 * moment (`attempt:<class>` of earlier attempts, `groups:<end>`) is added by commit.lua.
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

/** Characters of a model's name that become part of a counter and a label. */
const MODEL_LENGTH = 100;

/**
 * What a result adds to the counters of its model, whose names are `COUNTER:MODEL`; null where the run has no price. Only `commit.lua` knows
 * whether the model has counters of its own.
 */
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

/** How a rollout ended, for the counts by family. */
function endOf(result: Result): FamilyEnd {
  if (result.outcome !== 'judged') return result.outcome;
  if (result.resolved !== null) return successOf(result) ? 'resolved' : 'unresolved';
  return result.reward === null ? 'ungraded' : 'scored';
}

/** `parked`: the claim that found its rollout's crash budget used up; it ran nothing, and is not counted as a crash. */
function attemptEnd({ failure }: Result): string {
  if (failure === null) return 'done';
  return failure.class === 'lost' ? 'parked' : failure.class;
}

const bucketOf = (value: number, bounds: readonly number[]): string =>
  String(bounds.find((bound) => value <= bound) ?? '+Inf');

/** Useful for a trainer: judged, with a reward. */
export const isUsable = (result: Result): boolean => result.outcome === 'judged' && result.reward !== null;

/** Lost to infrastructure in a way that another rollout in its place may escape; three dead workers are warning enough. */
export const isRefillable = ({ failure }: Result): boolean =>
  failure !== null && failure.class !== 'lost' && FAILURES[failure.class].retryable;
