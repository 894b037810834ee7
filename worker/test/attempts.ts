/** Attempts that a test starts itself, on a node without a puller. */
import {
  type Farm,
  type Instance,
  loadConfig,
  newId,
  parseRolloutId,
  type RunRecord,
  silentLog,
} from '@swefarm/shared';
import { createWorkerMetrics } from '../src/metrics/workermetrics.ts';
import { createNode, type Node } from '../src/node/node.ts';
import { attemptRollout } from '../src/rollout/attempt.ts';
import { runRollout } from '../src/rollout/rollout.ts';

type Parts = Parameters<typeof createNode>[0];
type Given = Pick<Parts, 'farm' | 'runtime' | 'threads'> &
  Partial<Parts> & { flags?: Record<string, unknown> };

export function openNode({ flags = {}, ...parts }: Given): Node {
  const all = { worker_id: `w-${newId()}`, node: 'n1', live_turns: 0, placement: 'off', ...flags };
  return createNode({
    config: loadConfig('worker', { env: {}, flags: all }),
    runRollout,
    metrics: createWorkerMetrics(),
    stop: new AbortController().signal,
    log: silentLog(),
    isWell: async () => true,
    ...parts,
  });
}

/** Submits a run of one rollout, without a job in the queue. */
export async function submitOne(farm: Farm, run: RunRecord, instance: Instance, patch?: string) {
  await farm.runs.create(run, [instance], patch === undefined ? [] : [['p', patch]]);
  const [id = ''] = await farm.groups.rollouts(run.run_id);
  const job = {
    ...{ rollout_id: id, run_id: run.run_id, instance_id: instance.instance_id, rollout_index: 0 },
    ...{ submitted_at: Date.now(), ...(patch === undefined ? {} : { patch_ref: 'p' }) },
  };
  return {
    id,
    /** @param which another rollout of the group */
    attempt: (node: Node, which = id) =>
      node.active.during(which, (signal) => {
        const { index } = parseRolloutId(which);
        return attemptRollout({ ...job, rollout_id: which, rollout_index: index }, node, signal);
      }),
    results: async () => (await farm.results.read(run.run_id, '0')).results.map(({ result }) => result),
    /** Classes of the ends of its attempts, and whether the work is stored. */
    ends: async () =>
      (await farm.journal.read(id)).map(({ end }) => `${end?.class}${end?.kept ? ' kept' : ''}`),
  };
}
