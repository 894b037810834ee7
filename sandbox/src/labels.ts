/** Labels of an engine's containers, by which the reaper finds the owner. */
import type { ContainerSpec, Owner } from './runtime.ts';

const PREFIX = 'swefarm.';
export const FARM_LABEL = `${PREFIX}farm`;

export function ownerLabels(spec: Pick<ContainerSpec, 'owner' | 'role'>): Record<string, string> {
  const { owner } = spec;
  return {
    [FARM_LABEL]: owner.farm,
    [`${PREFIX}worker`]: owner.worker,
    [`${PREFIX}pid`]: String(owner.pid),
    [`${PREFIX}pid_started`]: owner.pid_started,
    [`${PREFIX}rollout`]: owner.rollout_id,
    [`${PREFIX}attempt`]: String(owner.attempt),
    [`${PREFIX}role`]: spec.role,
  };
}

/** Returns null if the labels of the farm are missing. The reaper does not remove a container without them. */
export function readOwner(labels: Record<string, string>): Owner | null {
  const farm = labels[FARM_LABEL];
  const worker = labels[`${PREFIX}worker`];
  if (farm === undefined || worker === undefined) return null;
  return {
    farm,
    worker,
    pid: Number(labels[`${PREFIX}pid`] ?? 0),
    pid_started: labels[`${PREFIX}pid_started`] ?? '',
    rollout_id: labels[`${PREFIX}rollout`] ?? '',
    attempt: Number(labels[`${PREFIX}attempt`] ?? 0),
  };
}
