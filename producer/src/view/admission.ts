/** Describes which rollouts of each policy play and wait, for `status` and `watch`. */
import type { AdmissionPool } from '@swefarm/shared';
import { terminalSafe } from '@swefarm/trajectories';

/** Returns one line for each pool whose rollouts have a limit. */
export const admissionLines = (pools: readonly AdmissionPool[]): string[] =>
  pools.flatMap((pool) => (pool.limit === null ? [] : [admissionLine(pool, pool.limit)]));

function admissionLine({ pool, playing, waiting, state }: AdmissionPool, limit: number): string {
  const suspended = Math.max(0, playing - limit);
  const loads = state?.endpoints ?? [];
  const sum = (of: (load: (typeof loads)[number]) => number): number =>
    loads.reduce((all, load) => all + of(load), 0);
  const usage = Math.round(100 * Math.max(0, ...loads.map(({ kv_usage }) => kv_usage)));
  const requests = `${sum(({ running }) => running)} requests run, ${sum(({ waiting: queued }) => queued)} wait`;
  return [
    `policy ${terminalSafe(pool)}: ${playing - suspended} rollouts play (limit ${limit})`,
    ...(suspended > 0 ? [`${suspended} are suspended`] : []),
    `${waiting} wait without a sandbox`,
    ...(loads.length > 0
      ? [`KV cache ${usage} %, ${requests}, ${sum(({ preemptions }) => preemptions)} preemptions`]
      : []),
    ...(state?.reason ? [`last lowered because ${terminalSafe(state.reason)}`] : []),
  ].join('; ');
}
