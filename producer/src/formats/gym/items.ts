/** What was said in a rollout as items of the Responses API, model call by model call. */
import type { Message, ToolDefinition, Turn } from '@swefarm/shared';

export type Item = Record<string, unknown> & { type: string };

export type CallItems = {
  turn: Turn;
  /** What the policy answered; never empty. */
  answer: Item[];
  /** What came back: outputs of its calls, or a message. */
  observations: Item[];
};

export type Conversation = { prompt: Item[]; calls: CallItems[] };

/** Messages before the first answer, then each answer with what followed it. */
export function conversationOf(messages: readonly Message[], turns: readonly Turn[]): Conversation {
  const starts = turns.map((turn) => turn.message);
  const prompt = messages.slice(0, starts[0] ?? messages.length).map(given);
  const calls = turns.map((turn, index) => {
    const message = messages[turn.message];
    const after = messages.slice(turn.message + 1, starts[index + 1] ?? messages.length);
    return {
      turn,
      answer: message ? answered(message, index) : [said('', index)],
      observations: after.map(given),
    };
  });
  return { prompt, calls };
}

function given(message: Message): Item {
  const text = message.content ?? '';
  if (message.role === 'tool') {
    return { type: 'function_call_output', call_id: message.tool_call_id ?? '', output: text };
  }
  return { type: 'message', role: message.role === 'assistant' ? 'user' : message.role, content: text };
}

function answered(message: Message, index: number): Item[] {
  const reasoning = message.reasoning_content;
  const calls = (message.tool_calls ?? []).map(
    (call, at): Item => ({
      type: 'function_call',
      id: `fc_${index}_${at}`,
      call_id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
      status: 'completed',
    }),
  );
  const text = message.content ?? '';
  return [
    ...(reasoning
      ? [{ type: 'reasoning', id: `rs_${index}`, summary: [{ type: 'summary_text', text: reasoning }] }]
      : []),
    ...(text !== '' || calls.length === 0 ? [said(text, index)] : []),
    ...calls,
  ];
}

const said = (text: string, index: number): Item => ({
  type: 'message',
  id: `msg_${index}`,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
});

/** A tool that the policy was shown, in the words of the Responses API. */
export const offered = ({ function: shown }: ToolDefinition): Item => ({
  type: 'function',
  ...shown,
  strict: false,
});
