/** Warns before a submit about requirements of instances that workers do not meet. Rollouts that no worker can run fail or wait. */
import { isLabelled } from '@swefarm/agents';
import { type Farm, type Instance, needsOf, type RunRecord, UNDERSTOOD } from '@swefarm/shared';

type Row = Pick<Instance, 'family' | 'plan' | 'needs'>;
type Run = Pick<RunRecord, 'needs'> & { agent: Pick<RunRecord['agent'], 'card'> };
type Ability = {
  parser_image?: boolean | undefined;
  understands?: number | undefined;
  bundles?: readonly string[] | undefined;
};

/** Returns the ability of a worker that this command starts. `parserImage` is the image in the configuration of the worker. */
export const localAbility = (parserImage: string | null): Ability => ({
  parser_image: parserImage !== null,
  understands: UNDERSTOOD,
});

/**
 * Returns warnings with the number of instances by family; no warning when no worker is alive yet.
 *
 * @param started abilities of the workers that this command itself starts
 */
export async function workerWarnings(
  instances: readonly Row[],
  run: Run,
  farm: { registry: Pick<Farm['registry'], 'list'> },
  started: readonly Ability[] = [],
): Promise<string[]> {
  const programs = instances.filter(
    ({ plan }) => plan?.outcomes.from === 'program' && plan.outcomes.image === 'tools',
  );
  const most = instances.reduce((level, row) => Math.max(level, needsOf(row)), run.needs);
  if (programs.length === 0 && most === 1 && run.agent.card === null) return [];
  const workers: Ability[] = [...started, ...(await farm.registry.list())];
  if (workers.length === 0) return [];
  return [
    ...imageWarning(programs, instances.length, workers),
    ...levelWarning(instances, run, most, workers),
    ...bundleWarning(run.agent.card, workers),
  ];
}

function bundleWarning(card: Run['agent']['card'], workers: readonly Ability[]): string[] {
  if (card === null) return [];
  const { name, version, bundle } = card;
  const lacking = workers.filter(({ bundles }) => bundles && !isLabelled(bundles, bundle.name, bundle.lock));
  if (lacking.length === 0) return [];
  const which = `the programs of agent ${name} ${version}`;
  const remedy = `run swefarm agents install ${name} there, or name a shared folder by agents_dir`;
  return [
    lacking.length === workers.length
      ? `none of the ${counted(workers)} has ${which}: rollouts will fail (worker/no_agent); ${remedy}`
      : `${lacking.length} of the ${counted(workers)} lack ${which}: attempts there end as worker/no_agent; ${remedy}`,
  ];
}

function imageWarning(needing: readonly Row[], all: number, workers: readonly Ability[]): string[] {
  if (needing.length === 0 || workers.some((worker) => worker.parser_image === true)) return [];
  return [
    `${needing.length} of ${all} instances need parser_image (${byFamily(needing)}), and none of the ${counted(workers)} names one: ` +
      'their rollouts will fail (worker/no_parser_image). Set SWEFARM_PARSER_IMAGE for the workers; see docs/running.md',
  ];
}

function levelWarning(
  instances: readonly Row[],
  run: Pick<RunRecord, 'needs'>,
  most: number,
  workers: readonly Ability[],
): string[] {
  const levels = workers.map(({ understands = 0 }) => understands);
  const least = Math.min(...levels);
  const older = levels.filter((level) => level < most).length;
  if (older === 0) return [];
  const beyond = instances.filter((row) => Math.max(needsOf(row), run.needs) > least);
  const who = `${beyond.length} of ${instances.length} instances (${byFamily(beyond)}) need workers of level ${most}`;
  return [
    older === workers.length
      ? `${who}, and none of the ${counted(workers)} has it: their rollouts wait for workers of a newer version`
      : `${who}, and ${older} of the ${counted(workers)} have a lower one: these leave them to the others`,
  ];
}

const counted = ({ length }: readonly Ability[]): string => (length === 1 ? '1 worker' : `${length} workers`);

/** Renders the number of rows by family, such as `swe-bench-live: 10, multi-swe: 2`. */
const byFamily = (rows: readonly Row[]): string =>
  [...Map.groupBy(rows, ({ family }) => family)]
    .map(([family, own]) => `${family}: ${own.length}`)
    .join(', ');
