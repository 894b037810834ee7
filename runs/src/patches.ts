/** Reads predictions in the forms of the SWE-bench harness, for rollouts that only apply and grade a patch. */

import { datasetError, describeValue, type RowProblem, readRows } from '@swefarm/datasets';
import { type Instance, UsageError } from '@swefarm/shared';

/**
 * Returns the patches by instance id, in file order; the rollouts of an instance take its patches in turn. A null patch counts as empty.
 *
 * @throws UsageError for bad rows and for instances of the run that have no prediction
 */
export async function readPatches(
  path: string,
  instances: readonly Pick<Instance, 'instance_id'>[],
  signal?: AbortSignal,
): Promise<Map<string, string[]>> {
  const patches = new Map<string, string[]>();
  const problems: RowProblem[] = [];
  for await (const row of readRows(path, signal)) {
    if ('problem' in row) {
      problems.push(row.problem);
      continue;
    }
    const { instance_id: id, model_patch } = row.value;
    const patch = model_patch ?? '';
    const bad = (field: string, value: unknown): RowProblem => ({
      ...{ where: row.where, field, expected: 'a string', found: describeValue(value) },
      remedy: 'write one prediction per row',
    });
    if (typeof id !== 'string') problems.push(bad('instance_id', id));
    else if (typeof patch !== 'string') problems.push(bad('model_patch', patch));
    else patches.set(id, [...(patches.get(id) ?? []), patch]);
  }
  if (problems.length > 0) throw datasetError(path, problems);
  const missing = instances.filter((one) => !patches.has(one.instance_id)).map((one) => one.instance_id);
  if (missing.length > 0) {
    const named = missing.slice(0, 10).join(', ') + (missing.length > 10 ? `, … (${missing.length})` : '');
    throw new UsageError(
      `${path}: has no prediction for ${named}; add them or narrow the dataset with --ids`,
    );
  }
  const wanted = new Set(instances.map((one) => one.instance_id));
  return new Map([...patches].filter(([id]) => wanted.has(id)));
}
