/** Names of runs and rollouts on the page. */

export const runOf = (rollout: string): string => rollout.slice(0, rollout.indexOf('.'));

/** Returns `instance #index` for the rollout id `run.instance.index`. */
export function nameOf(rollout: string): string {
  const rest = rollout.slice(rollout.indexOf('.') + 1);
  const cut = rest.lastIndexOf('.');
  return `${rest.slice(0, cut)} #${rest.slice(cut + 1)}`;
}
