import { engineSocket, imageSettings } from '../engine/settings.ts';
import type { RuntimeEntry } from '../entry.ts';
import { registrySettings } from '../registry/settings.ts';

export const rootfs: RuntimeEntry = {
  isAutomatic: () => true,
  open: async (config, log) => {
    const { rootfsRuntime } = await import('./runtime.ts');
    return await rootfsRuntime({
      imagesDir: config.images_dir,
      scratchDir: config.scratch_dir,
      dockerSocket: engineSocket(config, 'docker'),
      images: imageSettings(config, 'docker'),
      registry: registrySettings(config),
      log,
    });
  },
};
