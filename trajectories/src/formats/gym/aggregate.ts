/** Computes the answer to `/aggregate_metrics`: the profile of a collection under the metric names of Gym's agents. */
import { z } from 'zod';
import { profileOf, type RolloutFact } from '../../output/profile.ts';
import { mean } from '../../output/tally.ts';

/** Body of the request. Its rows have no `response`. */
export const AggregateRequest = z.looseObject({
  verify_responses: z.array(
    z.looseObject({
      reward: z.number().nullish(),
      instance_id: z.string().nullish(),
      _ng_task_index: z.number().int().nullish(),
    }),
  ),
});
type Row = z.infer<typeof AggregateRequest>['verify_responses'][number];

export function aggregate(rows: readonly Row[]) {
  const profile = profileOf(rows.map(factOf));
  const passes = Object.entries(profile.pass_at).map(([k, value]) => [`pass@${k}`, value]);
  const average = profile.pass_at_1_avg_of_k;
  const key = {
    ...present({ 'mean/reward': mean(numbers(rows, 'reward')), accuracy: profile.accuracy }),
    ...(average ? { [`pass@1[avg-of-${average.k}]`]: average.value } : {}),
    ...Object.fromEntries(passes.slice(-1)),
    resolved: profile.resolved,
    judged: profile.judged,
    total: profile.total,
  };
  return {
    key_metrics: key,
    agent_metrics: {
      ...statistics(rows),
      ...Object.fromEntries(passes),
      ...key,
      ...present({
        resolved_task_count: profile.resolved,
        resolved_task_rate: profile.accuracy,
        average_turns: profile.mean_turns,
        patch_applied_rate: profile.patch_applied_rate,
        eval_error_rate: profile.evaluation_error_rate,
      }),
      failures: profile.failures,
      by_repository: profile.by_repository,
      groups: profile.groups,
    },
    group_level_metrics: [...Map.groupBy(rows, (row) => row._ng_task_index ?? row.instance_id ?? '')].map(
      ([task, own]) => ({
        ...(typeof task === 'number' ? { _ng_task_index: task } : {}),
        instance_id: own[0]?.instance_id ?? null,
        ...statistics(own),
        ...Object.fromEntries(
          Object.entries(profileOf(own.map(factOf)).pass_at).map(([k, value]) => [`pass@${k}`, value]),
        ),
      }),
    ),
  };
}

function factOf(row: Row): RolloutFact {
  const failure = typeof row._ng_failure_class === 'string' ? row._ng_failure_class : null;
  const judged = failure === null && row.judged !== false;
  return {
    group: String(row._ng_task_index ?? row.instance_id ?? ''),
    repo: typeof row.repo === 'string' ? row.repo : 'unknown',
    outcome: judged ? 'judged' : 'failed',
    resolved: judged && resolvedIn(row),
    reward: judged ? (row.reward ?? null) : null,
    ...(typeof row['part/resolved'] === 'number' ? { reward_parts: { resolved: row['part/resolved'] } } : {}),
    turns: typeof row.turns === 'number' ? row.turns : 0,
    patch_applied: row.patch_applied === true,
    evaluation_error: row.evaluation_error === true,
    failure: failure ?? (judged ? null : 'unjudged'),
    cancelled: null,
  };
}

/** Returns null for a score without a verdict. Rows of other agents have no `resolved`; a reward of at least 1 counts as resolved. */
function resolvedIn({ resolved, reward }: Row): boolean | null {
  if (typeof resolved === 'boolean' || resolved === null) return resolved;
  return (reward ?? 0) >= 1;
}

/** Returns statistics of each numeric field whose name has no leading `_`, under the names that Gym's aggregation uses. */
function statistics(rows: readonly Row[]): Record<string, number> {
  const names = new Set(
    rows.flatMap((row) =>
      Object.entries(row).flatMap(([name, value]) =>
        typeof value === 'number' && !name.startsWith('_') ? [name] : [],
      ),
    ),
  );
  return Object.fromEntries(
    [...names].flatMap((name): [string, number][] => {
      const values = numbers(rows, name).toSorted((a, b) => a - b);
      const average = mean(values) ?? 0;
      const variance = values.reduce((sum, value) => sum + (value - average) ** 2, 0);
      const middle = values.length / 2;
      return [
        [`mean/${name}`, average],
        [`max/${name}`, values.at(-1) ?? 0],
        [`min/${name}`, values[0] ?? 0],
        [`median/${name}`, ((values[Math.ceil(middle) - 1] ?? 0) + (values[Math.floor(middle)] ?? 0)) / 2],
        // Sample standard deviation, as pandas computes it.
        [`std/${name}`, values.length < 2 ? 0 : Math.sqrt(variance / (values.length - 1))],
      ];
    }),
  );
}

const numbers = (rows: readonly Row[], name: string): number[] =>
  rows.flatMap((row) => (typeof row[name] === 'number' ? [row[name]] : []));

const present = (values: Readonly<Record<string, number | null>>): Record<string, number> =>
  Object.fromEntries(Object.entries(values).filter((entry): entry is [string, number] => entry[1] !== null));
