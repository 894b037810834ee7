/** Selects rows by criteria, at random, in parts, or without duplicates. Stores ids and hashes in memory, never rows. */
import { createHash } from 'node:crypto';
import { UsageError } from '@swefarm/shared';
import { type DatasetFilters, isNamed, rank } from '../filter.ts';
import { openRow, type RowOptions } from '../row.ts';
import { plainJson } from './exact.ts';
import type { Criterion } from './expression.ts';
import type { VerbatimFile, VerbatimRow } from './rows.ts';
import { readRow, variablesOf } from './variables.ts';

export type RowFilters = Pick<DatasetFilters, 'ids' | 'repos' | 'match' | 'maxTests'> & {
  criterion?: Criterion | undefined;
  gradable?: boolean;
  options: RowOptions;
};

export function rowFilter(path: string, filters: RowFilters): (row: VerbatimRow) => boolean {
  const ids = filters.ids ? new Set(filters.ids) : null;
  return (row) => {
    if (!isNamed(idOf(row), repositoryOf(row), filters, ids)) return false;
    if (filters.maxTests !== undefined) {
      const tests = variablesOf(row, new Set(['tests']), filters.options).get('tests');
      if (typeof tests !== 'bigint' || tests > filters.maxTests) return false;
    }
    if (filters.gradable && !('instance' in readRow(row, filters.options))) return false;
    const { criterion } = filters;
    return (
      criterion?.matches(variablesOf(row, criterion.names, filters.options), `${path}: ${row.where}`) ?? true
    );
  };
}

/** Returns the id of a row; for a row without id, a hash of the content. */
export function idOf(row: VerbatimRow): string {
  const { id } = opened(row);
  return typeof id === 'string' && id !== '' ? id : `sha256:${hashOf(row)}`;
}

export function repositoryOf(row: VerbatimRow): string {
  const { repo } = opened(row);
  return typeof repo === 'string' && repo !== '' ? repo : 'unknown';
}

const opened = (row: VerbatimRow) => openRow(row.where, plainJson(row.value) as Record<string, unknown>);

/** Returns a hash of the content of a row, or of the given columns. The order of the columns in the file has no effect. */
export function hashOf(row: VerbatimRow, columns?: readonly string[]): string {
  const value = JSON.parse(row.text()) as Record<string, unknown>;
  const names = columns ?? Object.keys(value).toSorted();
  return createHash('sha256')
    .update(JSON.stringify(names.map((name) => [name, value[name] ?? null])))
    .digest('hex');
}

export type Sampling = { count: number; seed: number; perRepository: boolean };

/** Returns the positions (`where`) of the drawn rows. The same seed draws the same ids, whatever the order of the rows. */
export async function drawSample(file: VerbatimFile, sampling: Sampling): Promise<Set<string>> {
  const byGroup = new Map<string, { where: string; rank: string }[]>();
  for await (const row of file.rows()) {
    const group = sampling.perRepository ? repositoryOf(row).toLowerCase() : '';
    const own = byGroup.get(group) ?? [];
    own.push({ where: row.where, rank: rank(idOf(row), sampling.seed) });
    byGroup.set(group, own);
  }
  const drawn = [...byGroup.values()].flatMap((own) =>
    own.toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, sampling.count),
  );
  return new Set(drawn.map(({ where }) => where));
}

export type Part = { name: string; share: number };

/** Parses `train=0.9,test=0.1`. The shares are relative weights. Throws UsageError. */
export function parseParts(text: string): Part[] {
  const parts = text.split(',').map((one) => {
    const [, name, share] = /^([A-Za-z0-9][\w-]*)=(\d+(?:\.\d+)?)$/.exec(one.trim()) ?? [];
    if (name === undefined || !(Number(share) > 0)) {
      throw new UsageError(`--parts: expected NAME=SHARE,… such as train=0.9,test=0.1, got "${one}"`);
    }
    return { name, share: Number(share) };
  });
  if (new Set(parts.map(({ name }) => name)).size === parts.length && parts.length > 1) return parts;
  throw new UsageError('--parts: expected at least two parts with different names');
}

/**
 * Returns the part of each row, by position (`where`). Rows with the same id, or by repository all rows of a repository, are
 * in one part: these groups are assigned in random order, each to the part that lacks the most rows.
 */
export async function splitRows(
  file: VerbatimFile,
  parts: readonly Part[],
  by: 'instance' | 'repo',
  seed: number,
): Promise<Map<string, string>> {
  const groups = new Map<string, string[]>();
  let total = 0;
  for await (const row of file.rows()) {
    // Rows with the same id are one instance and must be in the same part.
    const key = by === 'repo' ? repositoryOf(row).toLowerCase() : idOf(row);
    groups.set(key, [...(groups.get(key) ?? []), row.where]);
    total += 1;
  }
  const weight = parts.reduce((sum, { share }) => sum + share, 0);
  const lacking = parts.map(({ name, share }) => ({ name, lacks: (total * share) / weight }));
  const found = new Map<string, string>();
  for (const key of [...groups.keys()].toSorted((a, b) => (rank(a, seed) < rank(b, seed) ? -1 : 1))) {
    const rows = groups.get(key) ?? [];
    const best = lacking.reduce((a, b) => (b.lacks > a.lacks ? b : a));
    best.lacks -= rows.length;
    for (const where of rows) found.set(where, best.name);
  }
  return found;
}

export type Doubles = { keep: 'first' | 'last' | 'error'; columns: readonly string[] | null };

export type Distinct = {
  /** Positions (`where`) of the rows to keep, for each file. */
  unique: Set<string>[];
  /** Numbers of omitted rows. `equal`: same content as the kept row. `different`: same key, but other content. */
  equal: number;
  different: number;
};

/**
 * Selects one row for each key (`columns`, or the id).
 *
 * @throws UsageError with the first differing rows that share a key, if `keep` is `error`
 */
export async function distinctRows(files: readonly VerbatimFile[], doubles: Doubles): Promise<Distinct> {
  const seen = new Map<string, { file: number; where: string; hash: string }>();
  const found: Distinct = { unique: files.map(() => new Set<string>()), equal: 0, different: 0 };
  const clashes: string[] = [];
  for (const [at, file] of files.entries()) {
    for await (const row of file.rows()) {
      const key = doubles.columns ? hashOf(row, doubles.columns) : idOf(row);
      const hash = hashOf(row);
      const earlier = seen.get(key);
      if (earlier) {
        found[earlier.hash === hash ? 'equal' : 'different'] += 1;
        if (earlier.hash !== hash && doubles.keep === 'error') {
          clashes.push(
            `  ${file.path}: ${row.where} and ${files[earlier.file]?.path}: ${earlier.where}: ${idOf(row)}`,
          );
        }
        if (doubles.keep !== 'last') continue;
        found.unique[earlier.file]?.delete(earlier.where);
      }
      seen.set(key, { file: at, where: row.where, hash });
      found.unique[at]?.add(row.where);
    }
  }
  if (clashes.length === 0) return found;
  const shown = clashes
    .slice(0, SHOWN)
    .concat(clashes.length > SHOWN ? [`  … and ${clashes.length - SHOWN} more`] : []);
  throw new UsageError(
    `rows share a key and differ in content; choose with --keep first or --keep last which ones stay:\n${shown.join('\n')}`,
  );
}
const SHOWN = 20;
