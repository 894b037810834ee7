/** Selects rows of a dataset: by name before the row is read, by number of tests and sampling afterwards. */
import { createHash } from 'node:crypto';
import type { Instance } from '@swefarm/shared';

export type DatasetFilters = {
  /** Ids of the instances to select. Each must exist in the file. */
  ids?: readonly string[] | undefined;
  repos?: readonly string[] | undefined;
  /** Pattern that the instance id must match. */
  match?: RegExp | undefined;
  /** Maximum number of tests in FAIL_TO_PASS and PASS_TO_PASS together. */
  maxTests?: number | undefined;
  /** Random sample. The same seed selects the same instances, whatever the order of the file. */
  sample?: { count: number; seed: number } | undefined;
  /** Maximum number of instances after the other filters, in file order. */
  first?: number | undefined;
};

/** Whether a row passes the filters `ids`, `match` and `repos`. A row whose id is no string passes. */
export function isNamed(
  id: unknown,
  repo: unknown,
  filters: DatasetFilters,
  ids: ReadonlySet<string> | null,
): boolean {
  if (typeof id !== 'string') return true;
  if (ids && !ids.has(id)) return false;
  if (filters.match && !filters.match.test(id)) return false;
  if (!filters.repos || typeof repo !== 'string') return true;
  return filters.repos.some((wanted) => wanted.toLowerCase() === repo.toLowerCase());
}

/** The candidates are reduced to the sample when there are this many more than twice the sample size, to bound memory. */
const SLACK = 1_000;

/** Adds an instance to the candidates, and drops candidates that can no longer be selected. */
export function addCandidate(candidates: Instance[], instance: Instance, filters: DatasetFilters): void {
  const { sample, first } = filters;
  if (choose([instance], { maxTests: filters.maxTests }).length === 0) return;
  if (!sample && first !== undefined && candidates.length >= first) return;
  candidates.push(instance);
  if (!sample || candidates.length < 2 * sample.count + SLACK) return;
  candidates.splice(0, candidates.length, ...choose(candidates, { sample }));
}

/** Applies `maxTests`, `sample` and `first`, and preserves the order. Idempotent. */
export function choose(instances: readonly Instance[], filters: DatasetFilters): Instance[] {
  const { maxTests, sample, first } = filters;
  let chosen = [...instances];
  if (maxTests !== undefined) {
    chosen = chosen.filter((one) => one.FAIL_TO_PASS.length + one.PASS_TO_PASS.length <= maxTests);
  }
  if (sample) {
    const ranked = chosen
      .map((one) => ({ id: one.instance_id, rank: rank(one.instance_id, sample.seed) }))
      .sort((a, b) => (a.rank < b.rank ? -1 : 1));
    const drawn = new Set(ranked.slice(0, sample.count).map((one) => one.id));
    chosen = chosen.filter((one) => drawn.has(one.instance_id));
  }
  return first === undefined ? chosen : chosen.slice(0, first);
}

/** Returns a sort key. Sorting keys by rank shuffles them in an order that depends only on `seed`. */
export const rank = (key: string, seed: number): string =>
  createHash('sha256').update(`${seed}\n${key}`).digest('hex');
