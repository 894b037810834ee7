/** How the folder of running sandboxes is checked and made. */
import type { OwnFolder } from '@swefarm/shared';

export const SCRATCH: OwnFolder = { setting: 'scratch_dir', mayBeShared: true };
