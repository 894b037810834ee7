/** What can run containers, by the names that flags and configuration take. */

/** auto: the first that works on the node. */
export const RUNTIMES = ['auto', 'docker', 'podman', 'apptainer', 'rootfs', 'host'] as const;
