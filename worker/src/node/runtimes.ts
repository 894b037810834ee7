/** Chooses the runtime of this node: the one that was asked for, or the first that works. */
import { join } from 'node:path';
import { UnusableError, type WorkerConfig } from '@swefarm/shared';
import type { Logger } from 'pino';
import { readMirrors } from '../images/fetch.ts';
import { apptainerRuntime } from '../sandbox/apptainer/runtime.ts';
import { dockerRuntime, type ImageSettings } from '../sandbox/docker/runtime.ts';
import { diskIsFull } from '../sandbox/free.ts';
import { hostRuntime } from '../sandbox/host/runtime.ts';
import { rootfsRuntime } from '../sandbox/rootfs/runtime.ts';
import type { Runtime, RuntimeCheck, RuntimeName } from '../sandbox/runtime.ts';
import { RUNTIME_AWAY } from './waitforruntime.ts';

/** DOCKER_HOST and CONTAINER_HOST are written as URLs; dockerode wants the path. */
const socketPath = (socket: string): string => socket.replace(/^unix:\/\//, '');
const engineSocket = (config: WorkerConfig): string =>
  socketPath(config.docker_socket ?? '/var/run/docker.sock');

/**
 * In the order of preference. `host` isolates nothing, so it is never chosen unasked; Apptainer without a place for its images
 * would find none.
 */
const automatic = (config: WorkerConfig): RuntimeName[] => [
  'docker',
  'podman',
  ...(config.apptainer_images.length > 0 ? (['apptainer'] as const) : []),
  'rootfs',
];

const imagesOf = (config: WorkerConfig, engine: string): ImageSettings => ({
  atOnce: config.image_pulls,
  mirrors: readMirrors(config.image_mirrors),
  broughtFile: join(config.images_dir, `brought-${engine}.json`),
  watermark: config.image_disk_watermark,
  pins: config.image_pins,
});

export async function openRuntime(name: RuntimeName, config: WorkerConfig, log: Logger): Promise<Runtime> {
  switch (name) {
    case 'docker':
      return dockerRuntime({
        socketPath: engineSocket(config),
        images: imagesOf(config, 'docker'),
        gapMs: config.engine_gap_ms,
        log,
      });
    case 'podman':
      return dockerRuntime({
        engine: 'podman',
        socketPath: socketPath(config.podman_socket),
        images: imagesOf(config, 'podman'),
        gapMs: config.engine_gap_ms,
        log,
      });
    case 'apptainer':
      return apptainerRuntime({
        templates: config.apptainer_images,
        imagesDir: config.images_dir,
        room: { watermark: config.image_disk_watermark, pins: config.image_pins },
        scratchDir: config.scratch_dir,
        command: config.apptainer_command,
        log,
      });
    case 'rootfs':
      return rootfsRuntime({
        imagesDir: config.images_dir,
        scratchDir: config.scratch_dir,
        dockerSocket: engineSocket(config),
        images: imagesOf(config, 'docker'),
        log,
      });
    case 'host':
      return hostRuntime({ scratchDir: config.scratch_dir, log });
    default:
      throw new UnusableError('runtime', `there is no runtime "${name}"`);
  }
}

export type ChosenRuntime = { runtime: Runtime; check: RuntimeCheck };

/** Throws UnusableError with every problem found and its remedy: `runtime_away` where that may pass, else `runtime`. */
export async function chooseRuntime(
  config: WorkerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<ChosenRuntime> {
  return await firstUsable(
    config.runtime === 'auto' ? automatic(config) : [config.runtime],
    config,
    log,
    signal,
  );
}

/** Docker or Podman, whatever runs the sandboxes. Throws as {@link chooseRuntime}. */
export async function chooseEngine(
  config: WorkerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<{ runtime: Runtime; socketPath: string }> {
  const names = ['docker', 'podman'] as const;
  const asked = names.filter((name) => name === config.runtime);
  const { runtime } = await firstUsable(asked.length > 0 ? asked : names, config, log, signal);
  const socket = runtime.name === 'podman' ? socketPath(config.podman_socket) : engineSocket(config);
  return { runtime, socketPath: socket };
}

async function firstUsable(
  names: readonly RuntimeName[],
  config: WorkerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<ChosenRuntime> {
  const problems: string[] = [];
  let isAway = false;
  for (const name of names) {
    const runtime = await openRuntime(name, config, log);
    const check = await runtime.check(signal).catch(async (error: unknown) => {
      await runtime[Symbol.asyncDispose]();
      throw error;
    });
    if (check.usable) return { runtime, check };
    problems.push(...check.problems.map((problem) => `${name}: ${problem}`));
    // Of several, an engine without a socket was never meant to be there. A full disk shows in many ways.
    const isAwaited = names.length === 1 ? check.away !== undefined : check.away === 'no_answer';
    isAway ||= isAwaited || (await diskIsFull(runtime));
    await runtime[Symbol.asyncDispose]();
  }
  throw new UnusableError(isAway ? RUNTIME_AWAY : 'runtime', `no usable runtime: ${problems.join('; ')}`);
}
