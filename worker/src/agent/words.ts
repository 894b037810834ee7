/** What a model says beside its thoughts and its calls, and the calls in it that it began and nobody could read. */
import {
  type Message,
  splitThinking,
  type Trajectory,
  type UnreadCall,
  type UnreadCalls,
  unreadCallIn,
} from '@swefarm/shared';

/** @param apart the content is known to hold no thought that the template opened; else whoever reads it has to look */
export function wordsOf(message: Message, apart: boolean): string {
  const opened = apart || message.reasoning_content ? false : null;
  return splitThinking(message.content ?? '', opened).rest;
}

/** Of an answer that calls no tool. */
export const unreadCall = (message: Message, apart: boolean): UnreadCall | null =>
  message.tool_calls?.length ? null : unreadCallIn(wordsOf(message, apart));

/** Over a whole rollout of an agent that works by tool calls; undefined when there was none. */
export function countUnread({ messages, turns, token_mode: mode }: Trajectory): UnreadCalls | undefined {
  const markers = new Map<string, number>();
  for (const { message: place } of turns) {
    const message = messages[place];
    const unread = message && unreadCall(message, mode === 'token-in');
    if (unread) markers.set(unread.marker, (markers.get(unread.marker) ?? 0) + 1);
  }
  const [most] = [...markers].sort(([, one], [, other]) => other - one);
  if (most === undefined) return undefined;
  return { answers: [...markers.values()].reduce((sum, count) => sum + count, 0), marker: most[0] };
}
