import { ByteWriter, parquetWrite } from 'hyparquet-writer';
import { type Shape, schemaOf, storedAs } from '../../export/parquetschema.ts';
import type { VerlRow } from './rows.ts';

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

/** Encodes rows of verl's dataset as a parquet file. Either all rows have a gold patch, or none has. */
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
      data: rows.map((row) => storedAs(shape[name] ?? 'text', row[name as keyof VerlRow])),
    })),
    schema: schemaOf(shape),
    // Statistics would repeat whole prompts, and no reader uses them.
    statistics: false,
  });
  return Buffer.from(writer.getBuffer());
}
