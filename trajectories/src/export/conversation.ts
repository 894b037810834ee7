/** A trajectory as a prompt and steps of thought, calls and observations, as formats of other agents have it. */
import {
  contentWithoutThought,
  findFencedBlock,
  picturesOf,
  type WireMessage,
  wireMessage,
} from '@swefarm/policy';
import { jsonText, type Message, type Trajectory, type Turn } from '@swefarm/shared';

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
  /** The calls that the agent ran; all of them when the turn is unknown. */
  ran: StepCall[];
  observations: Message[];
};

export type Conversation = { prompt: Message[]; steps: Step[] };

type Source = Pick<Trajectory, 'messages' | 'turns'> & Partial<Pick<Trajectory, 'token_mode'>>;

/** An answer without a turn is parsed as the agent parses it. */
export function conversationOf({ messages, turns, token_mode }: Source): Conversation {
  const prompt: Message[] = [];
  const steps: Step[] = [];
  const byMessage = new Map(turns.map((turn) => [turn.message, turn]));
  for (const [at, message] of messages.entries()) {
    const last = steps.at(-1);
    if (message.role === 'assistant') {
      const turn = byMessage.get(at) ?? null;
      const read = message.tool_calls?.length
        ? calledIn(message, turn)
        : writtenIn(message, turn, token_mode === 'token-in');
      steps.push({ message, at, turn, ...read, observations: [] });
    } else if (last) last.observations.push(message);
    else prompt.push(message);
  }
  return { prompt, steps };
}

type Read = Pick<Step, 'thought' | 'calls' | 'ran'>;

/** The farm runs the tool calls of an answer in order and records each command. */
function calledIn(message: Message, turn: Turn | null): Read {
  let commands = turn?.commands.length ?? Infinity;
  let whole = true;
  const calls: StepCall[] = [];
  const ran: StepCall[] = [];
  for (const { id, function: called } of message.tool_calls ?? []) {
    const { name, arguments: raw } = called;
    const call = { id, name, args: parsedObject(raw), raw };
    calls.push(call);
    if (commandOf(call) !== null || name === 'bash') whole = commands-- > 0;
    else if (name === 'submit_solution') whole &&= turn === null || call.args !== null || raw.trim() === '';
    if (whole) ran.push(call);
  }
  return { thought: message.content ?? '', calls, ran };
}

/** The fenced block of a text. No block ran of an answer that was cut or refused. */
function writtenIn(message: Message, turn: Turn | null, apart: boolean): Read {
  const text = message.content ?? '';
  const content = contentWithoutThought(message, apart);
  const block = findFencedBlock(content);
  const found = 'malformed' in block ? null : block;
  const commands = turn ? turn.commands.map(({ command }) => command) : found ? [found.command] : [];
  const ran = commands.map((command) => ({
    id: null,
    name: 'bash',
    args: { command },
    raw: JSON.stringify({ command }),
  }));
  if (!found || found.command !== commands[0]) return { thought: text, calls: ran, ran };
  const before = text.length - content.length;
  const thought = text.slice(0, before + found.start) + text.slice(before + found.end);
  return { thought: thought.trim(), calls: ran, ran };
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

/** Whether a call submits: by the tool, or by a command that prints the sentinel. */
export function isSubmit(call: StepCall): boolean {
  if (call.name === 'submit_solution' || call.name === 'submit') return true;
  const command = commandOf(call);
  return call.name === 'bash' && command !== null && SENTINEL.test(command);
}

/** The sentinels of mini-swe-agent's prompts and ours. */
const SENTINEL = /\b(?:COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT)\b/;

export const SHOWS_PICTURES = 'its prompt shows pictures, which this format does not have';

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

/** The fields of the Chat Completions API and the thought. Content with pictures is in parts. */
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

/**
 * As {@link plainMessage}, with the arguments of calls as objects, as chat templates render them. Values are text, because readers of JSON
 * lines want one type a column; arguments that are no object become the value of `arguments`.
 */
export function templateMessage(message: Message) {
  const { tool_calls, ...plain } = plainMessage(message);
  if (tool_calls === undefined) return plain;
  const calls = tool_calls.map(({ function: { name, arguments: raw }, ...call }) => {
    const entries = Object.entries(parsedObject(raw) ?? { arguments: raw });
    const values = entries.map(([key, value]) => [key, typeof value === 'string' ? value : jsonText(value)]);
    return { ...call, function: { name, arguments: Object.fromEntries(values) as Record<string, string> } };
  });
  return { ...plain, tool_calls: calls };
}
