/** What a model says beside its thoughts and its calls, and a call in it that it began and nobody could read. */
import type { Message } from '../trajectory.ts';
import { splitThinking } from './thinking.ts';
import { type UnreadCall, unreadCallIn } from './toolcalls/forms.ts';

/** @param apart the content is known to hold no thought that the template opened; else whoever reads it has to look */
export function wordsOf(message: Message, apart: boolean): string {
  const opened = apart || message.reasoning_content ? false : null;
  return splitThinking(message.content ?? '', opened).rest;
}

/** Of an answer that calls no tool. */
export const unreadCall = (message: Message, apart: boolean): UnreadCall | null =>
  message.tool_calls?.length ? null : unreadCallIn(wordsOf(message, apart));
