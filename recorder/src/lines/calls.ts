/** Decides which calls of an answer can be read, and in which form the agent gets an answer whose calls cannot. */
import { contentWithoutThought, findUnreadCall } from '@swefarm/policy';
import type { AgentCard, Message, ToolDefinition } from '@swefarm/shared';
import { tryParseJson } from '@swefarm/shared';

type Calls = NonNullable<Message['tool_calls']>;

/** Returns whether a text is a JSON object. An empty text is an empty object. */
function isObject(text: string): boolean {
  const value = text.trim() === '' ? {} : tryParseJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the indices of the calls that name no tool, or whose arguments are no JSON object. */
const unreadableOf = (calls: Calls, tools: readonly ToolDefinition[]): number[] =>
  calls.flatMap(({ function: called }, index) =>
    tools.some((tool) => tool.function.name === called.name) && isObject(called.arguments) ? [] : [index],
  );

export type Sampled = {
  message: Message;
  /** All that was sampled, as one text; absent if the server parsed the answer. */
  text?: string | undefined;
};

/** Whether a request allows calls, and the rule of the card for unreadable calls. */
export type CallRule = {
  tools: readonly ToolDefinition[];
  callsAllowed: boolean;
  malformed: AgentCard['api']['malformed'];
};

export type AnswerRead = {
  /** The answer with its calls, or as a text. Arguments are never repaired. */
  message: Message;
  /** Indices of the calls in the message that cannot be read. */
  unread: ReadonlySet<number>;
  /** Whether a call could not be read, or was sampled in a form that no parser reads. */
  malformed: boolean;
};

const NONE: ReadonlySet<number> = new Set();

/** Returns the answer as the history has it. */
export function readAnswer(
  { message, text }: Sampled,
  { tools, callsAllowed, malformed }: CallRule,
): AnswerRead {
  const calls = message.tool_calls ?? [];
  if (calls.length === 0) {
    const isUnread = tools.length > 0 && callsAllowed && findUnreadCall(message, text !== undefined) !== null;
    return { message, unread: NONE, malformed: isUnread };
  }
  if (!callsAllowed) return { message: asText(message, text), unread: NONE, malformed: false };
  const unread = unreadableOf(calls, tools);
  if (unread.length === 0) return { message, unread: NONE, malformed: false };
  return malformed === 'raw'
    ? { message, unread: new Set(unread), malformed: true }
    : { message: asText(message, text), unread: NONE, malformed: true };
}

/** Returns the answer without calls. Without the sampled text, the calls are written as their name and arguments. */
function asText({ tool_calls: calls, ...message }: Message, text: string | undefined): Message {
  if (text !== undefined) {
    const { reasoning_content: thought } = message;
    const content = thought ? contentWithoutThought({ role: 'assistant', content: text }, false) : text;
    return { ...message, content };
  }
  const written = (calls ?? []).map(({ function: called }) => `${called.name}(${called.arguments})`);
  return { ...message, content: [message.content ?? '', ...written].filter((one) => one !== '').join('\n') };
}
