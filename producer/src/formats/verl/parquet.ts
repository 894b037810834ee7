/** Encodes rows of verl's dataset as a parquet file with a nested schema that pyarrow reads as lists and structs. */
import type { SchemaElement } from 'hyparquet';
import { ByteWriter, parquetWrite } from 'hyparquet-writer';
import type { VerlRow } from './rows.ts';

type Shape = 'text' | 'integer' | 'boolean' | readonly [Shape] | { readonly [field: string]: Shape };

const KWARGS: Shape = { create_kwargs: { instance_id: 'text', instance: 'text' } };
const COLUMNS = {
  data_source: 'text',
  prompt: [{ role: 'text', content: 'text' }],
  ability: 'text',
  reward_model: { style: 'text', ground_truth: 'text' },
  agent_name: 'text',
  extra_info: {
    split: 'text',
    index: 'integer',
    instance_id: 'text',
    repo: 'text',
    base_commit: 'text',
    tests: { FAIL_TO_PASS: ['text'], PASS_TO_PASS: ['text'] },
    prompt_style: 'text',
    need_tools_kwargs: 'boolean',
    tools_kwargs: { bash: KWARGS, submit_solution: KWARGS },
  },
} as const satisfies Record<keyof VerlRow, Shape>;

/** The file's bytes. Either all rows have a gold patch or none has. */
export async function verlParquet(rows: readonly VerlRow[]): Promise<Buffer> {
  const gold = rows.some((row) => row.extra_info.patch !== undefined);
  const shape: Record<string, Shape> = {
    ...COLUMNS,
    extra_info: { ...COLUMNS.extra_info, ...(gold ? { patch: 'text' as const } : {}) },
  };
  const writer = new ByteWriter();
  await parquetWrite({
    writer,
    columnData: Object.keys(COLUMNS).map((name) => ({
      name,
      data: rows.map((row) => stored(row[name as keyof VerlRow])),
    })),
    schema: [
      { name: 'schema', num_children: Object.keys(shape).length },
      ...Object.entries(shape).flatMap(([name, of]) => elements(name, of)),
    ],
    // Statistics would repeat whole prompts, and no reader uses them.
    statistics: false,
  });
  return Buffer.from(writer.getBuffer());
}

function elements(name: string, shape: Shape): SchemaElement[] {
  const optional = { name, repetition_type: 'OPTIONAL' as const };
  if (shape === 'text') return [{ ...optional, type: 'BYTE_ARRAY', converted_type: 'UTF8' }];
  if (shape === 'integer') return [{ ...optional, type: 'INT64' }];
  if (shape === 'boolean') return [{ ...optional, type: 'BOOLEAN' }];
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

/** INT64 columns are written from BigInt. */
function stored(value: unknown): unknown {
  if (typeof value === 'number') return BigInt(value);
  if (Array.isArray(value)) return value.map(stored);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, stored(inner)]));
}
