import { type Engine, engineSocket, imageSettings } from '../engine/settings.ts';
import type { RuntimeEntry } from '../entry.ts';

const entryOf = (engine: Engine): RuntimeEntry => ({
  isAutomatic: () => true,
  engineSocket: (config) => engineSocket(config, engine),
  open: async (config, log) => {
    const { dockerRuntime } = await import('./runtime.ts');
    return await dockerRuntime({
      engine,
      socketPath: engineSocket(config, engine),
      images: imageSettings(config, engine),
      gapMs: config.engine_gap_ms,
      log,
    });
  },
});

export const docker = entryOf('docker');
export const podman = entryOf('podman');
