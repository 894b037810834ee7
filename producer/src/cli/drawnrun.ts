/** The state of a run that draws its groups (`--until-groups`), for the summary at its end and its exit code. */
import { passEstimate } from '@swefarm/runs';
import { type Farm, mostGroups, type RunRecord } from '@swefarm/shared';

export type DrawnRun = {
  /** Instances of the opened groups. */
  instanceIds: string[];
  /** Number of opened rollouts. */
  rollouts: number;
  /** Whether the run has as many groups as it was to have. */
  enough: boolean;
  /** Groups and estimated pass rate in one line. */
  text: string;
};

/** Returns counts as a text: `short 1, uniform 3`. */
const describeCounts = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');

/** Returns null for a run without `until`. */
export async function readDrawnRun(
  farm: Farm,
  { run_id }: Pick<RunRecord, 'run_id'>,
): Promise<DrawnRun | null> {
  // Only the stored record has the sizes of the strata.
  const record = await farm.runs.get(run_id);
  if (!record || record.until === null) return null;
  const { until, dataset } = record;
  const [{ drawn, selected, dropped }, groups, estimate] = await Promise.all([
    farm.results.counts(run_id),
    farm.results.groups(run_id),
    passEstimate(farm, record),
  ]);
  const parts = [
    `${selected} of ${until.groups} groups selected (${until.keep}), ${drawn} drawn of at most ${mostGroups(record, dataset.instances)}`,
    ...(Object.keys(dropped).length > 0 ? [`dropped: ${describeCounts(dropped)}`] : []),
    ...(estimate
      ? [
          `pass rate of the dataset ${estimate.pass_rate.toFixed(3)} (95 %: ${estimate.low.toFixed(3)} to ${estimate.high.toFixed(3)})`,
        ]
      : []),
  ];
  return {
    instanceIds: [...groups.keys()],
    rollouts: [...groups.values()].reduce((sum, { size }) => sum + size, 0),
    enough: selected >= until.groups,
    text: parts.join('; '),
  };
}
