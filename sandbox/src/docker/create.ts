/** The options of a container: an idle first process that code inside cannot kill, limits, no privileges. */
import { readFileSync } from 'node:fs';
import type Docker from 'dockerode';
import type { Engine } from '../engine/settings.ts';
import { ownerLabels } from '../labels.ts';
import { CAPABILITIES } from '../namespaces/bubblewrap.ts';
import type { ContainerSpec } from '../runtime.ts';

/** First process of an image without bash, which accepts no requests. The script continues if code removes `sleep`. */
const IDLE = `sleep 0 || exit 127; trap 'kill -9 -1' USR1; while :; do sleep 86400 & wait $!; done`;
/** The script first.sh. Comments are removed, because the process list shows the script. */
const FIRST = readFileSync(new URL('./first.sh', import.meta.url), 'utf8').replaceAll(/^ *#.*\n/gm, '');
/**
 * bash retries a fork that the process limit refuses; dash would exit. Signals from inside (`kill -9 -1`) do not reach process 1, so
 * the engine must not add an init process in front of this one.
 */
const ENTRYPOINT = [
  '/bin/sh',
  '-c',
  'if [ -x /bin/bash ]; then exec /bin/bash --norc -p -c "$1" first; fi; echo swefarm no requests; exec </dev/null >/dev/null 2>&1; eval "$0"',
  IDLE,
  FIRST,
];

/** The parts of procfs that engines hide by default; our list replaces the engine's. */
const HIDDEN = [
  ...['acpi', 'asound', 'interrupts', 'kcore', 'keys', 'latency_stats', 'sched_debug', 'scsi'],
  ...['timer_list', 'timer_stats'],
].map((name) => `/proc/${name}`);
/** The memory of process 1: a write there could change the exit code of the container. */
const FIRST_MEMORY = ['/proc/1/mem', '/proc/1/task/1/mem'];
const MASKED = [...HIDDEN, '/sys/firmware', '/sys/devices/virtual/powercap', ...FIRST_MEMORY];

/**
 * Returns read-only mounts, without the file systems below the folders, which would stay writable. Docker takes no `nosuid`, and
 * `no-new-privileges` has the same effect. Only in Docker's `Mounts` a missing folder is an error.
 */
function mountsOf({ mounts = [] }: ContainerSpec, engine: Engine): Docker.HostConfig {
  if (engine === 'podman')
    return { Binds: mounts.map(({ source, target }) => `${source}:${target}:ro,nosuid,nodev,bind,rprivate`) };
  return {
    Mounts: mounts.map(({ source, target }) => ({
      ...{ Type: 'bind', Source: source, Target: target, ReadOnly: true },
      BindOptions: { Propagation: 'rprivate', NonRecursive: true },
    })),
  };
}

/**
 * @param takesRequests see {@link FirstProcess}
 * @param profile seccomp filter that replaces the engine's own: JSON text for Docker, path for Podman; null: the engine cannot filter
 */
export function createOptions(
  spec: ContainerSpec,
  engine: Engine,
  profile: string | null,
  takesRequests: boolean,
): Docker.ContainerCreateOptions {
  const { limits } = spec;
  return {
    Image: spec.image.ref,
    Entrypoint: ENTRYPOINT,
    Cmd: [],
    ...(spec.user ? { User: spec.user } : {}),
    Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
    Labels: ownerLabels(spec),
    OpenStdin: takesRequests,
    // Standard input closes when the worker's stream ends.
    StdinOnce: takesRequests,
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
      CapAdd: [...CAPABILITIES],
      SecurityOpt: [
        'no-new-privileges',
        ...(profile === null ? [] : [`seccomp=${profile}`]),
        ...(engine === 'podman' ? [`mask=${FIRST_MEMORY.join(':')}`] : []),
      ],
      ...(engine === 'docker' ? { MaskedPaths: MASKED } : {}),
      IpcMode: 'private',
      LogConfig: { Type: 'none', Config: {} },
      // The node's out-of-memory killer should choose sandboxes before the worker.
      OomScoreAdj: 500,
      ...mountsOf(spec, engine),
      ...(limits.diskBytes === null ? {} : { StorageOpt: { size: String(limits.diskBytes) } }),
    },
  };
}
