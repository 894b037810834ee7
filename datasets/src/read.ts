/** Reads a dataset of any known format into instances, or reports all problems of its rows. */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { type Instance, UsageError } from '@swefarm/shared';
import type { RowOptions } from './families/family.ts';
import { addCandidate, choose, type DatasetFilters, isNamed } from './filter.ts';
import { withNamedTasks } from './harbor/named.ts';
import {
  datasetError,
  type RawRow,
  type RowProblem,
  type UngradableRows,
  ungradableError,
} from './problem.ts';
import { openRow } from './row.ts';
import { readRows } from './source.ts';

export type Dataset = {
  /** Absolute path of the file. */
  path: string;
  instances: Instance[];
  /** Hash of the selected instances. A filter changes the hash, but compression of the file does not. */
  sha256: string;
  rows: number;
  /** Ids of all rows of the file. */
  ids: ReadonlySet<string>;
  /** Number of omitted ungradable rows, by reason; empty without `skipUngradable`. */
  ungradable: ReadonlyMap<string, number>;
  /** Messages for the caller about the selected rows, such as unknown keys. */
  warnings: string[];
};

export type ReadOptions = RowOptions & {
  filters?: DatasetFilters;
  /** Omits and counts rows that cannot be graded; otherwise such a row is an error. */
  skipUngradable?: boolean | undefined;
  signal?: AbortSignal;
};

/** Reading ends after this many problems. */
const MOST_PROBLEMS = 10_000;

/**
 * Reads the selected instances of a file. Rows that the name filters exclude are checked only for valid JSON and duplicate ids.
 *
 * @throws UsageError with the problems of all bad rows, for duplicate or unknown ids, and if no instance is selected
 */
export async function readDataset(path: string, options: ReadOptions = {}): Promise<Dataset> {
  const absolute = resolve(path);
  const filters = options.filters ?? {};
  const gather = gatherer(filters, options);
  const rows = withNamedTasks(readRows(path, options.signal), options.familyFiles, (message) =>
    gather.warnings.push(message),
  );
  for await (const row of rows) {
    gather.add(row);
    if (gather.problems.length >= MOST_PROBLEMS) break;
  }
  if (gather.problems.length > 0) throw datasetError(path, gather.problems);
  if (gather.ungradable.size > 0 && options.skipUngradable !== true) {
    throw ungradableError(path, gather.ungradable, gather.seen.size);
  }
  if (gather.seen.size === 0) throw new UsageError(`${path}: contains no rows; fetch or write it again`);
  const missing = (filters.ids ?? []).filter((id) => !gather.seen.has(id));
  if (missing.length > 0) {
    const named = missing.slice(0, 20).join(', ') + (missing.length > 20 ? ', …' : '');
    throw new UsageError(`${path}: has no instance ${named}; check --ids against the file`);
  }
  const instances = choose(gather.instances, filters);
  if (instances.length === 0) {
    const graded = gather.ungradable.size > 0 ? ' and can be graded' : '';
    throw new UsageError(
      `${path}: none of its ${gather.seen.size} rows passes the filters${graded}; loosen them`,
    );
  }
  return {
    path: absolute,
    instances,
    sha256: chosenSha256(instances),
    rows: gather.seen.size,
    ids: new Set(gather.seen.keys()),
    ungradable: new Map([...gather.ungradable].map(([reason, { count }]) => [reason, count])),
    warnings: gather.warnings,
  };
}

function gatherer(filters: DatasetFilters, options: RowOptions) {
  const instances: Instance[] = [];
  const problems: RowProblem[] = [];
  const warnings: string[] = [];
  const ungradable: UngradableRows = new Map();
  const seen = new Map<string, string>();
  const ids = filters.ids ? new Set(filters.ids) : null;
  const add = (row: RawRow): void => {
    if ('problem' in row) {
      problems.push(row.problem);
      return;
    }
    const { id, repo, read: readRow } = openRow(row.where, row.value, options);
    if (typeof id === 'string') {
      const earlier = seen.get(id);
      if (earlier !== undefined) {
        problems.push({
          where: row.where,
          field: 'instance_id',
          expected: 'an id that no other row has',
          found: `${id}, which ${earlier} has too`,
          remedy: 'remove one of the two',
        });
        return;
      }
      seen.set(id, row.where);
    }
    if (!isNamed(id, repo, filters, ids)) return;
    const read = readRow();
    if ('instance' in read) {
      addCandidate(instances, read.instance, filters);
      warnings.push(...read.warnings);
    } else if (read.problems.every((problem) => problem.ungradable !== undefined)) count(read.problems[0]);
    else problems.push(...read.problems.filter((problem) => problem.ungradable === undefined));
  };
  /** Counts an ungradable row under its first reason. */
  const count = (problem: RowProblem | undefined): void => {
    if (problem?.ungradable === undefined) return;
    const earlier = ungradable.get(problem.ungradable);
    ungradable.set(problem.ungradable, {
      count: (earlier?.count ?? 0) + 1,
      first: earlier?.first ?? problem,
    });
  };
  return { instances, problems, warnings, ungradable, seen, add };
}

export function chosenSha256(instances: readonly Instance[]): string {
  const hash = createHash('sha256');
  for (const instance of instances) {
    const entries = Object.entries(instance).sort(([a], [b]) => (a < b ? -1 : 1));
    hash.update(`${JSON.stringify(entries)}\n`);
  }
  return hash.digest('hex');
}
