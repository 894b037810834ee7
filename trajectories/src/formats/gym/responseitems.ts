/** Converts the messages of a rollout to items of the Responses API, grouped by model call. */
import { dataUrl, picturesOf } from '@swefarm/policy';
import { type Message, ownTurns, type ToolDefinition, type Turn, type WholeLine } from '@swefarm/shared';

export type ResponseItem = Record<string, unknown> & { type: string };

export type CallItems = {
  turn: Turn;
  /** Items of the model's answer; never empty. */
  answer: ResponseItem[];
  observations: ResponseItem[];
};

export type Conversation = { prompt: ResponseItem[]; calls: CallItems[] };

/** Returns the messages before the line's own first answer as prompt, then each own answer with the messages that follow it. */
export function conversationOf(line: WholeLine): Conversation {
  const { messages } = line;
  const turns = ownTurns(line);
  const starts = turns.map((turn) => turn.message);
  const prompt = messages.slice(0, starts[0] ?? messages.length).flatMap(inputItems);
  const calls = turns.map((turn, index) => {
    const message = messages[turn.message];
    const after = messages.slice(turn.message + 1, starts[index + 1] ?? messages.length);
    return {
      turn,
      answer: message ? answerItems(message, index) : [textItem('', index)],
      observations: after.flatMap(inputItems),
    };
  });
  return { prompt, calls };
}

/** Converts a message that the agent sent. An assistant's message among them is an earlier answer, or a text of the agent. */
function inputItems(message: Message, at: number): ResponseItem[] {
  const text = message.content ?? '';
  if (message.role === 'assistant') return answerItems(message, `given_${at}`);
  if (message.role === 'tool') {
    return [{ type: 'function_call_output', call_id: message.tool_call_id ?? '', output: text }];
  }
  const images = picturesOf(message).map((picture) => ({
    type: 'input_image',
    detail: 'auto',
    image_url: dataUrl(picture),
  }));
  const { role } = message;
  if (images.length === 0) return [{ type: 'message', role, content: text }];
  return [{ type: 'message', role, content: [{ type: 'input_text', text }, ...images] }];
}

function answerItems(message: Message, index: number | string): ResponseItem[] {
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

const textItem = (text: string, index: number | string): ResponseItem => ({
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
