/** Settings of pulls without an engine, from the worker's configuration. */
import type { WorkerConfig } from '@swefarm/shared';
import type { ConnectionSettings } from './connection.ts';

export type RegistrySettings = ConnectionSettings & {
  /** Folder on a shared file system that keeps fetched layers for all nodes; null: none. */
  blobsDir: string | null;
};

export const registrySettings = (config: WorkerConfig): RegistrySettings => ({
  ca: config.registry_ca,
  plainHttp: config.registry_http,
  blobsDir: config.image_blobs_dir,
});
