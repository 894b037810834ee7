/** Builds parquet schemas in which pyarrow finds lists and structs, and converts values for their columns. */
import type { SchemaElement } from 'hyparquet';

export type Shape =
  | 'text'
  | 'boolean'
  | 'integer'
  | 'int32'
  | 'double'
  | 'float'
  | readonly [Shape]
  | { readonly [field: string]: Shape };

export const schemaOf = (columns: Readonly<Record<string, Shape>>): SchemaElement[] => [
  { name: 'schema', num_children: Object.keys(columns).length },
  ...Object.entries(columns).flatMap(([name, shape]) => elements(name, shape)),
];

const TYPES = {
  boolean: 'BOOLEAN',
  integer: 'INT64',
  int32: 'INT32',
  double: 'DOUBLE',
  float: 'FLOAT',
} as const;

function elements(name: string, shape: Shape): SchemaElement[] {
  const optional = { name, repetition_type: 'OPTIONAL' as const };
  if (shape === 'text') return [{ ...optional, type: 'BYTE_ARRAY', converted_type: 'UTF8' }];
  if (typeof shape === 'string') return [{ ...optional, type: TYPES[shape] }];
  if (isList(shape)) {
    return [
      { ...optional, converted_type: 'LIST', num_children: 1 },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      ...elements('element', shape[0]),
    ];
  }
  const fields = Object.entries(shape);
  return [{ ...optional, num_children: fields.length }, ...fields.flatMap(([key, of]) => elements(key, of))];
}

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape);

/** Converts a value to the types that hyparquet-writer expects: 64-bit integers are BigInt, and absent values are null. */
export function storedAs(shape: Shape, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (shape === 'integer') return BigInt(value as number);
  if (typeof shape === 'string') return value;
  if (isList(shape)) {
    const [of] = shape;
    return of === 'int32' || of === 'float' ? value : (value as unknown[]).map((one) => storedAs(of, one));
  }
  const fields = value as Record<string, unknown>;
  return Object.fromEntries(Object.entries(shape).map(([key, of]) => [key, storedAs(of, fields[key])]));
}
