/** Rollout ids as the page shows them. */

export const runOf = (rollout: string): string => rollout.slice(0, rollout.indexOf('.'));

/** `run.instance.index` as `instance #index`. */
export function nameOf(rollout: string): string {
  const rest = rollout.slice(rollout.indexOf('.') + 1);
  const cut = rest.lastIndexOf('.');
  return `${rest.slice(0, cut)} #${rest.slice(cut + 1)}`;
}
