import type { RuntimeEntry } from '../entry.ts';

export const apptainer: RuntimeEntry = {
  // Without apptainer_images the runtime finds only images that are named by their path.
  isAutomatic: (config) => config.apptainer_images.length > 0,
  open: async (config, log) => {
    const { apptainerRuntime } = await import('./runtime.ts');
    return await apptainerRuntime({
      templates: config.apptainer_images,
      imagesDir: config.images_dir,
      room: { watermark: config.image_disk_watermark, pins: config.image_pins },
      scratchDir: config.scratch_dir,
      command: config.apptainer_command,
      log,
    });
  },
};
