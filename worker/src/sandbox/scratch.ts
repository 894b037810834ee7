/** What the folder of running sandboxes has to be, whoever makes it. */
import type { OwnFolder } from '@swefarm/shared';

export const SCRATCH: OwnFolder = { setting: 'scratch_dir', mayBeShared: true };
