/** Attempts that are known to succeed. Each line is checked, so that the list is complete and current. */
import type { Runtime } from '../../src/runtime.ts';

type Known = Partial<Record<Runtime['name'], string>>;

const NO_QUOTA =
  'the engine has no quota for the storage of its containers here; the node pauses when its disk is full';
const SAME_USER =
  'processes of one sandbox are one user: what they print is not to be trusted, exit codes and the patch are taken from outside';
const OWN_INIT =
  'process 1 of an engine is a shell with the same rights as the commands: they see its files and its root, which are theirs too; its memory and its limits are out of their reach';
const HOST_NETWORK = "egress is the host's network as it is; give it to evaluation only where gold needs it";

export const KNOWN: Record<string, Known> = {
  "the host's loopback, with egress": { rootfs: HOST_NETWORK, apptainer: HOST_NETWORK },
  'tracing process 1, its memory, files and root': { docker: OWN_INIT, podman: OWN_INIT },
  'filling the disk': { docker: NO_QUOTA, podman: NO_QUOTA },
  'writing into the output of another exec': {
    docker: SAME_USER,
    podman: SAME_USER,
    rootfs: SAME_USER,
    apptainer: SAME_USER,
  },
};
