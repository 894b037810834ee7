/** A trajectory as other agents' formats have it: a prompt, then steps of thought, calls and observations. */
import {
  type Message,
  picturesOf,
  type Trajectory,
  type Turn,
  type WireMessage,
  wireMessage,
} from '@swefarm/shared';

/** One command or tool call of an answer. */
export type StepCall = {
  /** Null in text conversations. */
  id: string | null;
  name: string;
  /** Null when they are no JSON object. */
  args: Record<string, unknown> | null;
  /** As the model wrote them. */
  raw: string;
};

export type Step = {
  message: Message;
  /** Index in the trajectory's messages. */
  at: number;
  turn: Turn | null;
  /** The answer without its calls. */
  thought: string;
  calls: StepCall[];
  observations: Message[];
};

export type Conversation = { prompt: Message[]; steps: Step[] };

/** A block of one command, as the prompts of the text form ask for it. */
const BLOCK = /^```(?:bash|mswea_bash_command)[ \t]*\n([\s\S]*?)\n```[ \t]*$/m;

export function conversationOf({ messages, turns }: Pick<Trajectory, 'messages' | 'turns'>): Conversation {
  const prompt: Message[] = [];
  const steps: Step[] = [];
  const byMessage = new Map(turns.map((turn) => [turn.message, turn]));
  for (const [at, message] of messages.entries()) {
    const last = steps.at(-1);
    if (message.role === 'assistant') {
      steps.push({ message, at, turn: byMessage.get(at) ?? null, ...callsOf(message), observations: [] });
    } else if (last) last.observations.push(message);
    else prompt.push(message);
  }
  return { prompt, steps };
}

function callsOf(message: Message): Pick<Step, 'thought' | 'calls'> {
  const text = message.content ?? '';
  if (message.tool_calls && message.tool_calls.length > 0) {
    const calls = message.tool_calls.map(({ id, function: { name, arguments: raw } }) => ({
      id,
      name,
      args: parsedObject(raw),
      raw,
    }));
    return { thought: text, calls };
  }
  const block = BLOCK.exec(text);
  if (!block) return { thought: text, calls: [] };
  const command = block[1] ?? '';
  const thought = `${text.slice(0, block.index)}${text.slice(block.index + block[0].length)}`.trim();
  const call = { id: null, name: 'bash', args: { command }, raw: JSON.stringify({ command }) };
  return { thought, calls: [call] };
}

export function parsedObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** The shell command of a call; null for a call of another tool. */
export const commandOf = ({ args }: StepCall): string | null =>
  typeof args?.command === 'string' ? args.command : null;

/** Whether a call ends the work: the tool for it, or a command that prints the sentinel. */
export function isSubmit(call: StepCall): boolean {
  if (call.name === 'submit_solution' || call.name === 'submit') return true;
  const command = commandOf(call);
  return call.name === 'bash' && command !== null && SENTINEL.test(command);
}

/** What mini-swe-agent's prompts have printed, and ours after them. */
const SENTINEL = /\b(?:COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT)\b/;

/** Why a format that holds text alone leaves out a rollout whose model was shown pictures. */
export const SHOWS_PICTURES = 'its prompt shows pictures, which this format cannot hold';

export const showsPictures = ({ messages }: Pick<Trajectory, 'messages'>): boolean =>
  messages.some((message) => picturesOf(message).length > 0);

/** The content of a message as a list of parts: its text, then its pictures. */
export function contentParts(message: Message): Exclude<WireMessage['content'], string | null> {
  const { content } = wireMessage(message);
  return Array.isArray(content) ? content : [{ type: 'text', text: content ?? '' }];
}

/** A message as {@link plainMessage} gives it. */
export type PlainMessage = Pick<Message, 'role' | 'reasoning_content' | 'tool_calls' | 'tool_call_id'> &
  Pick<WireMessage, 'content'>;

/**
 * The fields of the Chat Completions API and the thought; without what an endpoint or another program added. Content with pictures
 * is in parts, as the model was sent it.
 */
export function plainMessage(message: Message): PlainMessage {
  const { role, reasoning_content, tool_calls, tool_call_id } = message;
  return {
    role,
    content: wireMessage(message).content,
    ...(reasoning_content === undefined ? {} : { reasoning_content }),
    ...(tool_calls === undefined ? {} : { tool_calls }),
    ...(tool_call_id === undefined ? {} : { tool_call_id }),
  };
}
