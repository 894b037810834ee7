/** From sampled text to the assistant's message, where no server parses it: mode `token-in`. */

import type { ToolParser } from '../records/toolparsers.ts';
import type { Message } from '../records/trajectory.ts';
import { splitThinking, type ThoughtTags } from './thinking.ts';
import type { CallParser, SampledCall } from './toolcalls/callparser.ts';
import { isHarmony, readHarmony } from './toolcalls/harmony.ts';
import { parseToolCalls } from './toolcalls/registry.ts';

export type AnswerSyntax = {
  /** Tools were offered: calls are read; otherwise the text stays whole (fenced commands are the agent's to read). */
  withTools: boolean;
  /** By its name, or as the model's template has it. */
  parser: ToolParser | CallParser;
  /** The tags of the thought that the template opened. */
  opened: ThoughtTags | false;
  /** Makes the id of a call from its place, for models that give none. */
  callId: (place: number) => string;
};

export function parseAnswer(text: string, form: AnswerSyntax): Message {
  const mayBeHarmony = typeof form.parser !== 'string' || ['auto', 'harmony'].includes(form.parser);
  if (mayBeHarmony && isHarmony(text)) {
    const answer = readHarmony(text);
    // What cannot be read stays text, so that the agent can tell the model.
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
  // A sampled id is kept when it can tell the calls of this answer apart.
  const usable = new Set(own).size === own.length && own.every((id) => /^[\w.:-]{1,80}$/.test(id));
  const calls = called.map(({ name, arguments: args, id }, place) => ({
    id: usable && id !== undefined ? id : callId(place),
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
