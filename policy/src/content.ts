/** Separates an answer's text from its thoughts, and finds a tool call that no parser could read. */
import type { Message } from '@swefarm/shared';
import { splitThinking } from './thinking.ts';
import { type UnreadCall, unreadCallIn } from './toolcalls/registry.ts';

/** @param apart false: the content may begin inside a thought, because the chat template can open one; true: it does not */
export function contentWithoutThought(message: Message, apart: boolean): string {
  const opened = apart || message.reasoning_content ? false : null;
  return splitThinking(message.content ?? '', opened).rest;
}

/** Finds an unread call in an answer without parsed tool calls. */
export const findUnreadCall = (message: Message, apart: boolean): UnreadCall | null =>
  message.tool_calls?.length ? null : unreadCallIn(contentWithoutThought(message, apart));
