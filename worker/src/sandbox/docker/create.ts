/** The options of a container: an idle first process that cannot be killed from inside, limits, no privileges. */
import type Docker from 'dockerode';
import { ownerLabels } from '../labels.ts';
import type { ContainerSpec } from '../runtime.ts';

/**
 * As process 1 it is immune to signals from inside (`kill -9 -1` of the model's code), reaps orphans, and on USR1 ends
 * everything else. It goes on without `sleep`, so that removing `sleep` does not end the container. Behind an extra init it could be killed.
 */
const IDLE = `sleep 0 || exit 127; trap 'kill -9 -1' USR1; while :; do sleep 86400 & wait $!; done`;
/** bash retries a fork that the process limit refuses; dash would exit. */
const ENTRYPOINT = [
  '/bin/sh',
  '-c',
  'if [ -x /bin/bash ]; then exec /bin/bash --norc -c "$0"; else eval "$0"; fi',
  IDLE,
];

/** Capabilities that package managers and test suites plausibly need as root; all others are dropped. */
const CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'SETGID',
  'SETUID',
  'SETPCAP',
  'NET_BIND_SERVICE',
];

/** @param profile file of a system call filter that replaces the engine's own */
export function createOptions(spec: ContainerSpec, profile: string | null): Docker.ContainerCreateOptions {
  const { limits } = spec;
  return {
    Image: spec.image.ref,
    Entrypoint: ENTRYPOINT,
    Cmd: [],
    Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
    Labels: ownerLabels(spec),
    OpenStdin: false,
    Tty: false,
    NetworkDisabled: spec.network === 'none',
    Healthcheck: { Test: ['NONE'] },
    StopSignal: 'SIGKILL',
    HostConfig: {
      Init: false,
      NetworkMode: spec.network === 'none' ? 'none' : 'default',
      NanoCpus: Math.round(limits.cpus * 1e9),
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryBytes,
      PidsLimit: limits.pids,
      CapDrop: ['ALL'],
      CapAdd: CAPABILITIES,
      SecurityOpt: ['no-new-privileges', ...(profile === null ? [] : [`seccomp=${profile}`])],
      IpcMode: 'private',
      LogConfig: { Type: 'none', Config: {} },
      // The node's out-of-memory killer should choose the sandboxes before the worker.
      OomScoreAdj: 500,
      ...(limits.diskBytes === null ? {} : { StorageOpt: { size: String(limits.diskBytes) } }),
    },
  };
}
