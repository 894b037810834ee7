/** Derives a parquet schema that stores JSON rows without loss, and converts rows for this schema. */
import { UsageError } from '@swefarm/shared';
import type { SchemaElement } from 'hyparquet';
import { mapLeaves } from '../fields/fields.ts';
import { ExactText, ExactTime, exactJson } from './exact.ts';
import type { VerbatimRow } from './rows.ts';

/** Type of a column. `json`: the values have no common simple type and are stored as JSON text. */
type Kind = 'nothing' | 'text' | 'boolean' | 'integer' | 'double' | 'texts' | 'json';

export type Columns = ReadonlyMap<string, Kind>;

/** Finds the kind of each column in one pass. @throws UsageError if there is no row */
export async function columnsOf(path: string, rows: AsyncIterable<VerbatimRow>): Promise<Columns> {
  const columns = new Map<string, Kind>();
  for await (const { value } of rows) {
    for (const [name, one] of Object.entries(value)) {
      columns.set(name, joined(columns.get(name) ?? 'nothing', kindOf(one)));
    }
  }
  if (columns.size === 0)
    throw new UsageError(`${path}: contains no rows, so a parquet file would have no columns`);
  return columns;
}

function kindOf(value: unknown): Kind {
  if (value === null || value === undefined) return 'nothing';
  if (typeof value === 'string' || value instanceof ExactTime) return 'text';
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'bigint') return 'integer';
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? 'integer' : Number.isInteger(value) ? 'json' : 'double';
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? 'texts' : 'json';
}

function joined(a: Kind, b: Kind): Kind {
  if (a === b || b === 'nothing') return a;
  if (a === 'nothing') return b;
  const numbers = (kind: Kind): boolean => kind === 'integer' || kind === 'double';
  return numbers(a) && numbers(b) ? 'double' : 'json';
}

/** Returns the parquet schema. A column without values becomes a text column. */
export function schemaOf(columns: Columns): SchemaElement[] {
  return [
    { name: 'schema', num_children: columns.size },
    ...[...columns].flatMap(([name, kind]): SchemaElement[] => {
      const optional = { name, repetition_type: 'OPTIONAL' as const };
      switch (kind) {
        case 'boolean':
          return [{ ...optional, type: 'BOOLEAN' }];
        case 'integer':
          return [{ ...optional, type: 'INT64' }];
        case 'double':
          return [{ ...optional, type: 'DOUBLE' }];
        case 'json':
          return [{ ...optional, type: 'BYTE_ARRAY', logical_type: { type: 'JSON' } }];
        case 'texts':
          return [
            { ...optional, converted_type: 'LIST', num_children: 1 },
            { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
            { name: 'element', repetition_type: 'OPTIONAL', type: 'BYTE_ARRAY', converted_type: 'UTF8' },
          ];
        default:
          return [{ ...optional, type: 'BYTE_ARRAY', converted_type: 'UTF8' }];
      }
    }),
  ];
}

const encoder = new TextEncoder();

/** Converts a row for the schema of `schemaOf`. A missing column becomes null. */
export function storedRow(row: VerbatimRow, columns: Columns): Record<string, unknown> {
  return Object.fromEntries(
    [...columns].map(([name, kind]) => [
      name,
      storedValue(row.value[name] ?? null, kind, `${row.where}: ${name}`),
    ]),
  );
}

function storedValue(value: unknown, kind: Kind, where: string): unknown {
  if (value === null) return null;
  if (kind === 'integer') return BigInt(value as number | bigint);
  if (kind === 'json') return encoder.encode(exactJson(value, where));
  return value instanceof ExactTime ? value.toString() : value;
}

/** Converts a value that was read from parquet to the writer's form for the same schema. */
export const sameValue = (value: unknown): unknown =>
  mapLeaves(value, (leaf) => {
    if (leaf instanceof ExactTime) return leaf.unit === 'DAYS' ? Number(leaf.value) : leaf.value;
    return leaf instanceof ExactText ? encoder.encode(leaf.text) : undefined;
  });
