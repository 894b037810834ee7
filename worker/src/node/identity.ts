/** The identity of this worker: containers, locks and the registry, which outlive it, carry it. */
import { ownStartMark } from '@swefarm/shared';

export type Identity = { farm: string; worker: string; node: string; pid: number; pid_started: string };

export function identify(farm: string, worker: string, node: string): Identity {
  return { farm, worker, node, pid: process.pid, pid_started: ownStartMark() };
}
