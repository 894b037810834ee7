/**
 * The container runtimes, by their names in flags and configuration. Each name needs an entry in `worker/src/node/runtimes.ts`,
 * which does not compile without it.
 */

/** In the order in which `auto` tries them. */
export const RUNTIME_NAMES = ['docker', 'podman', 'apptainer', 'rootfs', 'host'] as const;
export type RuntimeName = (typeof RUNTIME_NAMES)[number];

/** auto: the first that works on the node. */
export const RUNTIMES = ['auto', ...RUNTIME_NAMES] as const;
