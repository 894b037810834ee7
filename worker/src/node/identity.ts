/** Identifies this worker process in labels of containers, in locks and in the registry. */
import { ownStartMark } from '@swefarm/shared';

export type Identity = { farm: string; worker: string; node: string; pid: number; pid_started: string };

export function identify(farm: string, worker: string, node: string): Identity {
  return { farm, worker, node, pid: process.pid, pid_started: ownStartMark() };
}
