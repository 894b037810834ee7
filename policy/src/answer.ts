/** Parses sampled text into the assistant's message in mode `token-in`, where the server does not parse answers. */

import type { Message, ToolParser } from '@swefarm/shared';
import { splitThinking, type ThoughtTags } from './thinking.ts';
import type { CallParser, SampledCall } from './toolcalls/callparser.ts';
import { isHarmony, readHarmony } from './toolcalls/harmony.ts';
import { parseToolCalls } from './toolcalls/registry.ts';

export type AnswerSyntax = {
  /** Whether the request offered tools. Otherwise calls are not parsed, and the agent finds fenced commands in the text. */
  withTools: boolean;
  /** Name of a parser, or the parser that fits the model's chat template. */
  parser: ToolParser | CallParser;
  /** Tags of the thought that the chat template opened at the end of the prompt; false if it opened none. */
  opened: ThoughtTags | false;
  /** Makes the id of a call from its index in the answer, for models that sample no ids. */
  callId: (index: number) => string;
};

export function parseAnswer(text: string, form: AnswerSyntax): Message {
  const mayBeHarmony = typeof form.parser !== 'string' || ['auto', 'harmony'].includes(form.parser);
  if (mayBeHarmony && isHarmony(text)) {
    const answer = readHarmony(text);
    // An unreadable call stays text, so that the agent can tell the model the mistake.
    if (answer === null || 'unread' in answer) return { role: 'assistant', content: text };
    const { calls, content, reasoning } = answer;
    return toMessage(
      form.withTools ? calls : [],
      calls.length > 0 && !form.withTools ? text : content,
      reasoning,
      form,
    );
  }
  const { reasoning, rest } = splitThinking(text, form.opened);
  const split = form.withTools ? parseToolCalls(rest, form.parser) : null;
  return toMessage(split?.calls ?? [], split?.content ?? rest, reasoning, form);
}

function toMessage(
  called: readonly SampledCall[],
  content: string,
  reasoning: string | null,
  { callId }: AnswerSyntax,
): Message {
  const own = called.map(({ id }) => id ?? '');
  // Sampled ids are used only when they are distinct within this answer.
  const usable = new Set(own).size === own.length && own.every((id) => /^[\w.:-]{1,80}$/.test(id));
  const calls = called.map(({ name, arguments: args, id }, index) => ({
    id: usable && id !== undefined ? id : callId(index),
    type: 'function' as const,
    function: { name, arguments: args },
  }));
  return {
    role: 'assistant',
    content: calls.length > 0 ? content || null : content,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(reasoning ? { reasoning_content: reasoning } : {}),
  };
}
