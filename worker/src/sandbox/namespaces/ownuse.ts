/** What a runtime of ours starts for itself, to see whether and how sandboxes work here: no rollout asked for it. */

import { ownMark } from '../../node/identity.ts';
import type { ContainerSpec } from '../runtime.ts';

export const OWN_USE: ContainerSpec = {
  image: { name: 'own use', digest: '', ref: '' },
  role: 'agent',
  owner: {
    farm: '',
    worker: 'runtime',
    pid: process.pid,
    pid_started: ownMark(),
    rollout_id: '',
    attempt: 0,
  },
  network: 'none',
  limits: { cpus: 1, memoryBytes: 1024 * 1024 * 1024, pids: 64, diskBytes: null },
  workdir: '/',
  env: {},
};
