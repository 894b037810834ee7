import type { OwnFolder } from '@swefarm/shared';

export const SCRATCH: OwnFolder = { setting: 'scratch_dir', mayBeShared: true };
