import type { RuntimeEntry } from '../entry.ts';
import { hostRuntime } from './runtime.ts';

export const host: RuntimeEntry = {
  // The host runtime has no isolation, so it is never chosen automatically.
  isAutomatic: () => false,
  open: (config, log) => hostRuntime({ scratchDir: config.scratch_dir, log }),
};
