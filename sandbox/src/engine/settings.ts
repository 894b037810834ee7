/** Settings of a node's engines and of their images, from the worker's configuration. */
import { join } from 'node:path';
import type { WorkerConfig } from '@swefarm/shared';
import { type FetchSettings, fetchSettings } from '../images/fetch.ts';

export type Engine = 'docker' | 'podman';

export type ImageSettings = FetchSettings & {
  pulledFile: string;
  /** Used share of the disk (0 to 1) from which images are removed. */
  watermark: number;
  /** Names of images that are never removed; `*` stands for anything. */
  pins: readonly string[];
};

/** Throws UsageError for mirrors and credentials that cannot be read. */
export function imageSettings(config: WorkerConfig, engine: Engine): ImageSettings {
  return {
    ...fetchSettings(config),
    pulledFile: join(config.images_dir, `brought-${engine}.json`),
    watermark: config.image_disk_watermark,
    pins: config.image_pins,
  };
}

export function engineSocket(config: WorkerConfig, engine: Engine): string {
  const socket =
    engine === 'podman' ? config.podman_socket : (config.docker_socket ?? '/var/run/docker.sock');
  return socket.replace(/^unix:\/\//, '');
}
