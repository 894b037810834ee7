/** The duties of maintenance. Each worker creates a list of its own at its start, because some duties have state. */
import {
  cancelAbandonedCalls,
  cancelAbandonedRuns,
  cancelAbandonedSessions,
  cancelExpiredRuns,
  cancelStaleRuns,
} from './cancelruns.ts';
import { commitCancelled } from './commitcancelled.ts';
import { giveUpRollouts, reportDeadWorkers } from './deadworkers.ts';
import type { Duty } from './duty.ts';
import { pauseFailingRuns } from './pauseruns.ts';
import { removeOwnerlessArtifacts } from './removeartifacts.ts';
import { queueRefills, requeueLostJobs } from './requeue.ts';

export const allDuties = (): readonly Duty[] => [
  cancelExpiredRuns,
  cancelStaleRuns,
  cancelAbandonedCalls,
  cancelAbandonedRuns,
  commitCancelled(),
  cancelAbandonedSessions,
  queueRefills,
  pauseFailingRuns,
  giveUpRollouts,
  requeueLostJobs,
  reportDeadWorkers(),
  removeOwnerlessArtifacts,
];
