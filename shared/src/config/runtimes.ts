/** Container runtimes. `auto` tries the suitable ones in this order. Each needs an entry in `worker/src/node/runtimes.ts`. */
export const RUNTIME_NAMES = ['docker', 'podman', 'apptainer', 'rootfs', 'host'] as const;
export type RuntimeName = (typeof RUNTIME_NAMES)[number];

export const RUNTIMES = ['auto', ...RUNTIME_NAMES] as const;
