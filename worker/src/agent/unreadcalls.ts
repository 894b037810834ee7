/** Counts the answers that began a tool call which no parser could read: distinguishes a wrong parser from a weak model. */
import { findUnreadCall } from '@swefarm/policy';
import type { Trajectory, UnreadCalls } from '@swefarm/shared';

/** Counts over a whole rollout of an agent that works by tool calls; undefined when there was none. */
export function countUnreadCalls({ messages, turns, token_mode: mode }: Trajectory): UnreadCalls | undefined {
  const markers = new Map<string, number>();
  for (const { message: place } of turns) {
    const message = messages[place];
    const unread = message && findUnreadCall(message, mode === 'token-in');
    if (unread) markers.set(unread.marker, (markers.get(unread.marker) ?? 0) + 1);
  }
  const [most] = [...markers].sort(([, one], [, other]) => other - one);
  if (most === undefined) return undefined;
  return { answers: [...markers.values()].reduce((sum, count) => sum + count, 0), marker: most[0] };
}
