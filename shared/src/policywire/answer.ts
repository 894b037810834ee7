/** From sampled text to the assistant's message, where no server parses it: mode `token-in`. */
import type { Message } from '../trajectory.ts';
import { splitThinking } from './thinking.ts';
import { splitToolCalls } from './toolcalls.ts';

/**
 * @param withTools tools were offered: calls are read; otherwise the text stays whole (fenced commands are the agent's to read)
 * @param callId makes the id of a call from its place
 */
export function readAnswer(text: string, withTools: boolean, callId: (place: number) => string): Message {
  const { reasoning, rest } = splitThinking(text);
  const split = withTools ? splitToolCalls(rest) : null;
  const calls = (split?.calls ?? []).map((called, place) => ({
    id: callId(place),
    type: 'function' as const,
    function: called,
  }));
  return {
    role: 'assistant',
    content: calls.length > 0 ? split?.content || null : rest,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(reasoning ? { reasoning_content: reasoning } : {}),
  };
}
