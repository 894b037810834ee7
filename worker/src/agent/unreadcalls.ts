/** Counts the answers with a tool call that no parser could read. Many of them show a wrong parser, not a weak model. */
import { findUnreadCall } from '@swefarm/policy';
import type { Trajectory, UnreadCalls } from '@swefarm/shared';

/** Returns the number of answers and the most frequent marker; undefined if every call was readable. */
export function countUnreadCalls({ messages, turns, token_mode: mode }: Trajectory): UnreadCalls | undefined {
  const markers = new Map<string, number>();
  for (const { message: index } of turns) {
    const message = messages[index];
    const unread = message && findUnreadCall(message, mode === 'token-in');
    if (unread) markers.set(unread.marker, (markers.get(unread.marker) ?? 0) + 1);
  }
  const [most] = [...markers].sort(([, one], [, other]) => other - one);
  if (most === undefined) return undefined;
  return { answers: [...markers.values()].reduce((sum, count) => sum + count, 0), marker: most[0] };
}
