/** Divides a trajectory into a prompt and steps: thought, calls and observations, as in the formats of other agents. */
import { asObject } from '@swefarm/datasets';
import {
  contentWithoutThought,
  findFencedBlock,
  picturesOf,
  type WireMessage,
  wireMessage,
} from '@swefarm/policy';
import { jsonText, type Message, SUBMIT_NAMES, type Trajectory, type Turn } from '@swefarm/shared';
import { NotExportable } from './format.ts';

export type StepCall = {
  /** Id of the tool call; null in text conversations. */
  id: string | null;
  name: string;
  /** The parsed arguments; null when `raw` is not a JSON object. */
  args: Record<string, unknown> | null;
  raw: string;
};

export type Step = {
  message: Message;
  at: number;
  turn: Turn | null;
  /** Text of the answer without its calls. */
  thought: string;
  calls: StepCall[];
  /** Calls that the agent ran; all calls if `turn` is null. */
  ran: StepCall[];
  observations: Message[];
};

export type Conversation = { prompt: Message[]; steps: Step[] };

type Source = Pick<Trajectory, 'messages' | 'turns'> &
  Partial<Pick<Trajectory, 'token_mode'>> & { tools?: Trajectory['tools'] | undefined };

/** Parses answers without a recorded turn in the same way as the agent does. */
export function conversationOf({ messages, turns, token_mode, tools = [] }: Source): Conversation {
  const prompt: Message[] = [];
  const steps: Step[] = [];
  const byMessage = new Map(turns.map((turn) => [turn.message, turn]));
  const offered = new Set(tools.map((tool) => tool.function.name));
  for (const [at, message] of messages.entries()) {
    const last = steps.at(-1);
    if (message.role === 'assistant') {
      const turn = byMessage.get(at) ?? null;
      const read = message.tool_calls?.length
        ? calledIn(message, turn, offered)
        : writtenIn(message, turn, token_mode === 'token-in');
      steps.push({ message, at, turn, ...read, observations: [] });
    } else if (last) last.observations.push(message);
    else prompt.push(message);
  }
  return { prompt, steps };
}

type Read = Pick<Step, 'thought' | 'calls' | 'ran'>;

/** Returns the tool calls of an answer. An agent of the farm runs the calls in order, so the number of recorded commands shows which calls ran. */
function calledIn(message: Message, turn: Turn | null, offered: ReadonlySet<string>): Read {
  // The farm does not see which calls of an agent that comes as a program ran.
  let commands = turn === null || turn.request ? Infinity : turn.commands.length;
  let whole = true;
  const calls: StepCall[] = [];
  const ran: StepCall[] = [];
  for (const { id, function: called } of message.tool_calls ?? []) {
    const { name, arguments: raw } = called;
    const call = { id, name, args: asObject(raw), raw };
    calls.push(call);
    if (SUBMITS.includes(name)) whole &&= turn === null || call.args !== null || raw.trim() === '';
    else if (commandOf(call) !== null || name === 'bash' || offered.has(name)) whole = commands-- > 0;
    if (whole) ran.push(call);
  }
  return { thought: message.content ?? '', calls, ran };
}

/** Returns the commands of a text answer: the ones that the turn recorded, or the fenced block if the turn is unknown. */
function writtenIn(message: Message, turn: Turn | null, apart: boolean): Read {
  const text = message.content ?? '';
  const content = contentWithoutThought(message, apart);
  const block = findFencedBlock(content);
  const found = 'malformed' in block ? null : block;
  const known = turn !== null && turn.request === undefined;
  const commands = known ? turn.commands.map(({ command }) => command) : found ? [found.command] : [];
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

/** Returns the shell command of a call; null for a call of another tool, such as an editor whose `command` is the name of an edit. */
export const commandOf = ({ name, args }: Pick<StepCall, 'name' | 'args'>): string | null =>
  typeof args?.command === 'string' && name !== 'str_replace_editor' ? args.command : null;

/** Returns whether the call submits the work: by a submit tool, or by a command that prints the sentinel. */
export function isSubmit(call: StepCall): boolean {
  if (SUBMITS.includes(call.name)) return true;
  const command = commandOf(call);
  return call.name === 'bash' && command !== null && SENTINEL.test(command);
}

const SUBMITS: readonly string[] = SUBMIT_NAMES;

/** Matches the sentinels in the prompts of mini-swe-agent and swefarm. */
const SENTINEL = /\b(?:COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT)\b/;

/** Throws NotExportable if a message has pictures. */
export function requireNoPictures({ messages }: Trajectory): void {
  if (messages.every((message) => picturesOf(message).length === 0)) return;
  throw new NotExportable('its prompt shows pictures, which this format does not have');
}

/** Returns the content of a message as a list of parts: first the text, then the pictures. */
export function contentParts(message: Message): Exclude<WireMessage['content'], string | null> {
  const { content } = wireMessage(message);
  return Array.isArray(content) ? content : [{ type: 'text', text: content ?? '' }];
}

type PlainMessage = Pick<WireMessage, 'content'> & {
  [K in 'role' | 'reasoning_content' | 'tool_calls' | 'tool_call_id']: Message[K];
};
type TemplateCall = Omit<NonNullable<Message['tool_calls']>[number], 'function'> & {
  function: { name: string; arguments: Record<string, string> };
};

/** Returns the fields of the Chat Completions API and the thought. Content with pictures is a list of parts. */
export function plainMessage(message: Message): PlainMessage {
  const { role, reasoning_content, tool_calls, tool_call_id } = message;
  return { role, content: wireMessage(message).content, reasoning_content, tool_calls, tool_call_id };
}

/**
 * Returns {@link plainMessage} with arguments of calls as objects, for chat templates. Argument values are text, because JSON Lines readers
 * expect one type per column. If the arguments are no JSON object, their text is the value of `arguments`.
 */
export function templateMessage(
  message: Message,
): Omit<PlainMessage, 'tool_calls'> & { tool_calls?: TemplateCall[] } {
  const { tool_calls, ...plain } = plainMessage(message);
  if (tool_calls === undefined) return plain;
  const calls = tool_calls.map(({ function: { name, arguments: raw }, ...call }) => {
    const entries = Object.entries(asObject(raw) ?? { arguments: raw });
    const values = entries.map(([key, value]) => [key, typeof value === 'string' ? value : jsonText(value)]);
    return { ...call, function: { name, arguments: Object.fromEntries(values) as Record<string, string> } };
  });
  return { ...plain, tool_calls: calls };
}
