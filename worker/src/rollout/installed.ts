/** Opens the agent `installed`: a program of somebody else, which asks the recording endpoint of the rollout. */
import { RolloutFailure } from '@swefarm/shared';
import type { OpenedAgent } from './openedagent.ts';

export async function openInstalled(): Promise<OpenedAgent> {
  throw new RolloutFailure('bug', 'agents that come as programs do not run yet');
}
