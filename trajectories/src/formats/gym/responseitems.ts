/** Converts the messages of a rollout to items of the Responses API, grouped by model call. */
import { dataUrl, picturesOf } from '@swefarm/policy';
import type { Message, ToolDefinition, Turn } from '@swefarm/shared';

export type ResponseItem = Record<string, unknown> & { type: string };

export type CallItems = {
  turn: Turn;
  /** Items of the model's answer; never empty. */
  answer: ResponseItem[];
  observations: ResponseItem[];
};

export type Conversation = { prompt: ResponseItem[]; calls: CallItems[] };

/** Returns the messages before the first answer as prompt, then each answer with the messages that follow it. */
export function conversationOf(messages: readonly Message[], turns: readonly Turn[]): Conversation {
  const starts = turns.map((turn) => turn.message);
  const prompt = messages.slice(0, starts[0] ?? messages.length).map(inputItem);
  const calls = turns.map((turn, index) => {
    const message = messages[turn.message];
    const after = messages.slice(turn.message + 1, starts[index + 1] ?? messages.length);
    return {
      turn,
      answer: message ? answerItems(message, index) : [textItem('', index)],
      observations: after.map(inputItem),
    };
  });
  return { prompt, calls };
}

function inputItem(message: Message): ResponseItem {
  const text = message.content ?? '';
  if (message.role === 'tool') {
    return { type: 'function_call_output', call_id: message.tool_call_id ?? '', output: text };
  }
  const role = message.role === 'assistant' ? 'user' : message.role;
  const images = picturesOf(message).map((picture) => ({
    type: 'input_image',
    detail: 'auto',
    image_url: dataUrl(picture),
  }));
  if (images.length === 0) return { type: 'message', role, content: text };
  return { type: 'message', role, content: [{ type: 'input_text', text }, ...images] };
}

function answerItems(message: Message, index: number): ResponseItem[] {
  const reasoning = message.reasoning_content;
  const calls = (message.tool_calls ?? []).map(
    (call, at): ResponseItem => ({
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
    ...(text !== '' || calls.length === 0 ? [textItem(text, index)] : []),
    ...calls,
  ];
}

const textItem = (text: string, index: number): ResponseItem => ({
  type: 'message',
  id: `msg_${index}`,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
});

export const toolItem = ({ function: shown }: ToolDefinition): ResponseItem => ({
  type: 'function',
  ...shown,
  strict: false,
});
