/** Plans the run of an evaluation: a new run for the open tasks, or the run of an earlier start. */
import { createHash } from 'node:crypto';
import { requireSameSettings } from '@swefarm/runs';
import { type Instance, type RunRecord, rolloutId, UsageError } from '@swefarm/shared';
import type { OutputEvaluation } from '@swefarm/trajectories';
import type { EvalTask } from './evaltasks.ts';

export type EvaluationRun = {
  record: RunRecord;
  instances: readonly Instance[];
  /** Tasks by rollout id. */
  items: ReadonlyMap<string, EvalTask>;
};

/**
 * Returns a new run for the open tasks, or the begun run; null when no task is open and no run was begun.
 *
 * @param describe returns the record of a new run with these instances
 * @param begun evaluation that an earlier start began; null for a new evaluation
 * @throws UsageError when the predictions or settings differ from those of the earlier start
 */
export function planEvaluationRun(
  items: readonly EvalTask[],
  instances: readonly Instance[],
  describe: (instances: Instance[]) => RunRecord,
  begun: OutputEvaluation | null,
): EvaluationRun | null {
  const rows = (chosen: Iterable<EvalTask>): Instance[] => {
    const ids = new Set([...chosen].map(({ prediction }) => prediction.instance_id));
    return instances.filter(({ instance_id }) => ids.has(instance_id));
  };
  if (!begun) {
    const open = items.filter(({ state }) => state === 'open');
    if (open.length === 0) return null;
    const chosen = rows(open);
    const record = describe(chosen);
    return { record, instances: chosen, items: byRollout(record, open) };
  }
  const { record } = begun;
  const rollouts = new Set(begun.rollouts);
  const given = byRollout(
    record,
    items.filter(({ state }) => state === 'open' || state === 'done'),
  );
  const own = new Map([...given].filter(([id]) => rollouts.has(id)));
  const added = [...given].some(([id, { state }]) => state === 'open' && !own.has(id));
  if (own.size < rollouts.size || added || hashPatches(own) !== begun.patches_sha256) {
    throw new UsageError(
      `evaluation ${begun.run_id} was begun with other predictions; give the same again, or choose another --run-id and --output`,
      { code: 'resume_differs' },
    );
  }
  const chosen = rows(own.values());
  requireSameSettings(record, describe(chosen));
  return { record, instances: chosen, items: own };
}

const byRollout = (record: RunRecord, items: readonly EvalTask[]): Map<string, EvalTask> =>
  new Map(items.map((item) => [rolloutId(record.run_id, item.prediction.instance_id, item.round), item]));

/** Hashes all patches with their rollout ids. */
export function hashPatches(items: EvaluationRun['items']): string {
  const hash = createHash('sha256');
  for (const id of [...items.keys()].sort()) {
    hash.update(JSON.stringify([id, items.get(id)?.prediction.model_patch]));
  }
  return hash.digest('hex');
}

/** Returns the patches of each instance by round. A round without an evaluation has an empty patch, which no rollout runs. */
export function patchesOf({ items }: EvaluationRun): Map<string, string[]> {
  const patches = new Map<string, string[]>();
  for (const { prediction, round } of items.values()) {
    const own = patches.get(prediction.instance_id) ?? [];
    patches.set(prediction.instance_id, own);
    for (let at = own.length; at <= round; at++) own.push('');
    own[round] = prediction.model_patch ?? '';
  }
  return patches;
}
