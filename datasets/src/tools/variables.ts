/** The variables of an expression: the columns of a row, and values derived from its instance. */

import type { Instance } from '@swefarm/shared';
import { tryParseJson } from '@swefarm/shared';
import { openRow, type RowOptions } from '../row.ts';
import { plainJson } from './exact.ts';
import type { VerbatimRow } from './rows.ts';

/** Derived variables and their descriptions. A column of the same name takes precedence. */
export const DERIVED: Readonly<Record<string, string>> = {
  family: 'the dataset family, as text',
  image: 'the container image',
  gradable: 'whether this farm can evaluate the instance',
  tests: 'how many tests FAIL_TO_PASS and PASS_TO_PASS contain together',
  patch_files: 'how many files the gold patch changes',
  patch_lines: 'how many lines the gold patch adds and removes',
};

export type ReadRow = { instance: Instance } | { problem: string };

/** Returns the instance of a row, or its first problem without the position in the file. */
export function readRow(row: VerbatimRow, options: RowOptions): ReadRow {
  const read = openRow(row.where, plainJson(row.value) as Record<string, unknown>, options).read();
  if ('instance' in read) return read;
  const [first] = read.problems;
  if (first === undefined) return { problem: 'it cannot be read' };
  const { ungradable, field, expected, found, remedy } = first;
  return { problem: ungradable ?? `${field ?? 'row'}: expected ${expected}, found ${found}; ${remedy}` };
}

/** Returns the values of `names`; null for a missing one. A test list is a list even if the row contains JSON text. */
export function variablesOf(
  row: VerbatimRow,
  names: ReadonlySet<string>,
  options: RowOptions,
): Map<string, unknown> {
  let read: ReadRow | null = null;
  const derived = (name: string): unknown => {
    read ??= readRow(row, options);
    if (name === 'gradable') return 'instance' in read;
    return 'instance' in read ? ofInstance(name, read.instance) : null;
  };
  return new Map(
    [...names].flatMap((name): [string, unknown][] => {
      if (Object.hasOwn(row.value, name)) return [[name, celValue(name, plainJson(row.value[name]))]];
      return [[name, Object.hasOwn(DERIVED, name) ? derived(name) : null]];
    }),
  );
}

function ofInstance(name: string, instance: Instance): unknown {
  const lines = instance.patch.split('\n');
  switch (name) {
    case 'family':
      return instance.family;
    case 'image':
      return instance.image;
    case 'tests':
      return BigInt(instance.FAIL_TO_PASS.length + instance.PASS_TO_PASS.length);
    case 'patch_files':
      return BigInt(lines.filter((line) => line.startsWith('diff --git ')).length);
    default:
      return BigInt(lines.filter((line) => /^(\+(?!\+\+ )|-(?!-- ))/.test(line)).length);
  }
}

function celValue(name: string, value: unknown): unknown {
  const text = /^(FAIL_TO_PASS|PASS_TO_PASS)$/.test(name) && typeof value === 'string' ? value : '';
  const list = tryParseJson(text);
  return Array.isArray(list) ? list : plain(value);
}

/** Converts a value for CEL. Whole numbers become integers, so that they are comparable with integer literals. */
function plain(value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object') return value;
  return new Map(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}
