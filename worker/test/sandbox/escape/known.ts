/** What is not held, by name: each line is checked, so that the list neither hides a new hole nor keeps an old one. */
import type { Runtime } from '../../../src/sandbox/runtime.ts';

type Known = Partial<Record<Runtime['name'], string>>;

const NO_QUOTA =
  'the engine has no quota for the storage of its containers here; the node pauses when its disk is full';
const SAME_USER =
  'processes of one sandbox are one user: what they print is not to be trusted, exit codes and the patch are taken from outside';
const OWN_INIT =
  'process 1 of an engine is an idle shell with the same rights as the commands: who takes it over has its own sandbox and no more';
const HOST_NETWORK = "egress is the host's network as it is; give it to evaluation only where gold needs it";

const OWN_FILTER =
  "Docker's own filter is left as it is: it lets AF_ALG or the audit's netlink through, and before Docker 23 AF_VSOCK too";

export const KNOWN: Record<string, Known> = {
  "the host's loopback, with egress": { rootfs: HOST_NETWORK, apptainer: HOST_NETWORK },
  'sockets of the hypervisor and of the kernel, which no network namespace holds': { docker: OWN_FILTER },
  'tracing process 1, its memory, files and root': { docker: OWN_INIT, podman: OWN_INIT },
  'filling the disk': { docker: NO_QUOTA, podman: NO_QUOTA },
  'writing into the output of another exec': {
    docker: SAME_USER,
    podman: SAME_USER,
    rootfs: SAME_USER,
    apptainer: SAME_USER,
  },
};
