/** All duties of a keeper, begun anew by each. A new one is a file beside this one, an import and a line here. */

import { orphans } from './abandonedcalls.ts';
import { stale } from './cancelstale.ts';
import { cancelledDuty } from './commitcancelled.ts';
import { deadWorkersDuty } from './deadworkers.ts';
import { deadlines } from './enddeadlines.ts';
import { sessionLeases } from './endsessions.ts';
import { parked } from './giveup.ts';
import type { Duty } from './maintenance.ts';
import { infraPause } from './pausegroups.ts';
import { ownerlessArtifacts } from './removeartifacts.ts';
import { lostJobs, refills } from './requeue.ts';

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
