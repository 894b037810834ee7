/** Instances whose outcomes a program of their dataset reads, and whether a worker can run it: said before their rollouts fail. */
import type { Farm, Instance } from '@swefarm/shared';

/** Null when nothing needs the image, a living worker names one, or no worker lives yet. */
export async function parserImageWarning(
  instances: readonly Pick<Instance, 'plan'>[],
  farm: { registry: Pick<Farm['registry'], 'list'> },
): Promise<string | null> {
  const needing = instances.filter(
    ({ plan }) => plan?.outcomes.from === 'program' && plan.outcomes.image === 'tools',
  );
  if (needing.length === 0) return null;
  const workers = await farm.registry.list();
  if (workers.length === 0 || workers.some((worker) => worker.parser_image === true)) return null;
  return (
    `${needing.length} of ${instances.length} instances need parser_image, and none of the ${workers.length} living workers names one: ` +
    'their rollouts will fail (worker/no_parser_image). Set SWEFARM_PARSER_IMAGE for the workers; docs/running.md says how to make the image'
  );
}
