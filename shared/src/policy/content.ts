/** What a model says beside its thoughts and its calls, and a call in it that it began and nobody could read. */
import type { Message } from '../records/trajectory.ts';
import { splitThinking } from './thinking.ts';
import { type UnreadCall, unreadCallIn } from './toolcalls/registry.ts';

/** @param apart the content is known to hold no thought that the template opened; else whoever reads it has to look */
export function contentWithoutThought(message: Message, apart: boolean): string {
  const opened = apart || message.reasoning_content ? false : null;
  return splitThinking(message.content ?? '', opened).rest;
}

/** Of an answer that calls no tool. */
export const findUnreadCall = (message: Message, apart: boolean): UnreadCall | null =>
  message.tool_calls?.length ? null : unreadCallIn(contentWithoutThought(message, apart));
