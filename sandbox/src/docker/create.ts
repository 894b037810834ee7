/** The options of a container: an idle first process that cannot be killed from inside, limits, no privileges. */
import { readFileSync } from 'node:fs';
import type Docker from 'dockerode';
import type { Engine } from '../engine/settings.ts';
import { ownerLabels } from '../labels.ts';
import type { ContainerSpec } from '../runtime.ts';

/** Without bash nothing can be asked of it. It goes on when code in the container removes `sleep`. */
const IDLE = `sleep 0 || exit 127; trap 'kill -9 -1' USR1; while :; do sleep 86400 & wait $!; done`;
/** Without its comments, which everybody in the container would read beside the process. */
const FIRST = readFileSync(new URL('./first.sh', import.meta.url), 'utf8').replaceAll(/^ *#.*\n/gm, '');
/**
 * bash retries a fork that the process limit refuses; dash would exit. As process 1 it is immune to signals from inside (`kill -9 -1` of
 * the model's code); behind an extra init it could be killed.
 */
const ENTRYPOINT = [
  '/bin/sh',
  '-c',
  'if [ -x /bin/bash ]; then exec /bin/bash --norc -p -c "$1" first; fi; echo swefarm no requests; exec </dev/null >/dev/null 2>&1; eval "$0"',
  IDLE,
  FIRST,
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

/** In procfs, what engines hide by default. A list of one's own replaces theirs. */
const HIDDEN = [
  ...['acpi', 'asound', 'interrupts', 'kcore', 'keys', 'latency_stats', 'sched_debug', 'scsi'],
  ...['timer_list', 'timer_stats'],
].map((name) => `/proc/${name}`);
/** The memory of process 1: who writes there decides how the container ends. */
const FIRST_MEMORY = ['/proc/1/mem', '/proc/1/task/1/mem'];
const MASKED = [...HIDDEN, '/sys/firmware', '/sys/devices/virtual/powercap', ...FIRST_MEMORY];

/**
 * @param isAsked whether its first process takes requests, see {@link FirstProcess}
 * @param profile system call filter that replaces the engine's own: the text for Docker, a file for Podman; null: the engine has none
 */
export function createOptions(
  spec: ContainerSpec,
  engine: Engine,
  profile: string | null,
  isAsked: boolean,
): Docker.ContainerCreateOptions {
  const { limits } = spec;
  return {
    Image: spec.image.ref,
    Entrypoint: ENTRYPOINT,
    Cmd: [],
    Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
    Labels: ownerLabels(spec),
    OpenStdin: isAsked,
    // As for a command of its own: it ends with the worker's stream.
    StdinOnce: isAsked,
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
      SecurityOpt: [
        'no-new-privileges',
        ...(profile === null ? [] : [`seccomp=${profile}`]),
        ...(engine === 'podman' ? [`mask=${FIRST_MEMORY.join(':')}`] : []),
      ],
      ...(engine === 'docker' ? { MaskedPaths: MASKED } : {}),
      IpcMode: 'private',
      LogConfig: { Type: 'none', Config: {} },
      // The node's out-of-memory killer should choose the sandboxes before the worker.
      OomScoreAdj: 500,
      ...(limits.diskBytes === null ? {} : { StorageOpt: { size: String(limits.diskBytes) } }),
    },
  };
}
