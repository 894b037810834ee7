/** All duties of a keeper, begun anew by each. A new one is a file beside this one, an import and a line here. */
import { ownerlessArtifacts } from './artifacts.ts';
import { cancelledDuty } from './cancelled.ts';
import { deadlines } from './deadlines.ts';
import { infraPause } from './infra.ts';
import type { Duty } from './keeper.ts';
import { lostJobs, refills } from './lost.ts';
import { orphans } from './orphans.ts';
import { parked } from './parked.ts';
import { sessionLeases } from './sessions.ts';
import { stale } from './stale.ts';
import { deadWorkersDuty } from './workers.ts';

export const allDuties = (): readonly Duty[] => [
  deadlines,
  stale,
  orphans,
  cancelledDuty(),
  sessionLeases,
  refills,
  infraPause,
  parked,
  lostJobs,
  deadWorkersDuty(),
  ownerlessArtifacts,
];
