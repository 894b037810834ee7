/** The rootfs runtime's entry in the list of runtimes. */
import { engineSocket, imageSettings } from '../engine/settings.ts';
import type { RuntimeEntry } from '../entry.ts';
import { rootfsRuntime } from './runtime.ts';

export const rootfs: RuntimeEntry = {
  isAutomatic: () => true,
  open: (config, log) =>
    rootfsRuntime({
      imagesDir: config.images_dir,
      scratchDir: config.scratch_dir,
      dockerSocket: engineSocket(config, 'docker'),
      images: imageSettings(config, 'docker'),
      log,
    }),
};
