/** Adds the findings of the registry to the instances of a run, and reports or omits broken instances. */

import type { Dataset } from '@swefarm/datasets';
import { chosenSha256 } from '@swefarm/datasets';
import { brokenBecause, type Instance } from '@swefarm/shared';
import type { HealthRegistry } from './registry.ts';

type DatasetWithHealth = {
  dataset: Dataset;
  /** Reasons by instance id. An instance is broken when every finding about it gives a reason. */
  broken: ReadonlyMap<string, string>;
};

export function addKnownHealth(
  dataset: Dataset,
  registry: HealthRegistry,
  skipBroken: boolean,
): DatasetWithHealth {
  const broken = new Map<string, string>();
  const instances = dataset.instances.flatMap((instance): Instance[] => {
    const health = registry.get(instance.instance_id);
    if (!health) return [instance];
    const reasons = health.map(brokenBecause);
    const [reason] = reasons;
    if (reason && !reasons.includes(null)) {
      broken.set(instance.instance_id, reason);
      if (skipBroken) return [];
    }
    return [{ ...instance, health: [...health] }];
  });
  if (instances.length === dataset.instances.length) return { dataset: { ...dataset, instances }, broken };
  const chosen = dataset.instances.filter(({ instance_id }) => !broken.has(instance_id));
  return { dataset: { ...dataset, instances, sha256: chosenSha256(chosen) }, broken };
}
