/** Specification of a container that the worker uses itself, to check the node or to prepare an image. */
import { ownStartMark } from '@swefarm/shared';
import type { ContainerSpec } from './runtime.ts';

export const INTERNAL_SPEC: ContainerSpec = {
  image: { name: 'own use', digest: '', ref: '' },
  role: 'agent',
  owner: {
    farm: '',
    worker: 'runtime',
    pid: process.pid,
    pid_started: ownStartMark(),
    rollout_id: '',
    attempt: 0,
  },
  network: 'none',
  limits: { cpus: 1, memoryBytes: 1024 * 1024 * 1024, pids: 64, diskBytes: null },
  workdir: '/',
  env: {},
};
