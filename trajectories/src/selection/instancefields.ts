/** Reads the columns of a dataset that are copied into exported rollouts. */
import { LICENCE_COLUMNS, openRow, readRows } from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import type { InstanceFields } from '../export/rollout.ts';

/** Returns the fields of the `wanted` instances by id. Throws UsageError when the file cannot be read. */
export async function readInstanceFields(
  path: string,
  wanted: ReadonlySet<string>,
): Promise<Map<string, InstanceFields>> {
  const found = new Map<string, InstanceFields>();
  for await (const row of readRows(path)) {
    if ('problem' in row) throw new UsageError(`${path}: ${row.where} is no row of a dataset`);
    const { id, read } = openRow(row.where, row.value);
    if (typeof id !== 'string' || !wanted.has(id)) continue;
    const text = (name: string): string | null => {
      const value = row.value[name];
      return typeof value === 'string' && value !== '' ? value : null;
    };
    const whole = read();
    found.set(id, {
      instance_id: id,
      shown_id: 'instance' in whole ? (whole.instance.shown_id ?? null) : null,
      repo: text('repo'),
      base_commit: text('base_commit'),
      version: text('version'),
      problem_statement: text('problem_statement'),
      licence: LICENCE_COLUMNS.map(text).find((name) => name !== null) ?? null,
    });
  }
  return found;
}
