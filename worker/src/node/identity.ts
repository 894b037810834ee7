/** Who this worker is, for what outlives it: containers, locks and the registry name it. */
import { ownStartMark } from '@swefarm/shared';

export type Identity = { farm: string; worker: string; node: string; pid: number; pid_started: string };

export function identify(farm: string, worker: string, node: string): Identity {
  return { farm, worker, node, pid: process.pid, pid_started: ownStartMark() };
}
