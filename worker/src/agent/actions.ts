/** Parses an answer of the model into the commands to run: one fenced block, or tool calls. */
import { contentWithoutThought, findFencedBlock, findUnreadCall } from '@swefarm/policy';
import {
  type AgentConfig,
  type Message,
  type Tool,
  type ToolDefinition,
  type Toolset,
  tryParseJson,
} from '@swefarm/shared';

export type Call =
  | { kind: 'bash'; command: string; toolCallId: string | null }
  /** Another tool of the toolset than bash and submit. `raw`: the arguments as the model wrote them. */
  | { kind: 'tool'; tool: Tool; args: Arguments; raw: string; toolCallId: string | null }
  | { kind: 'submit'; submission: string | null; toolCallId: string | null };

export type Arguments = Readonly<Record<string, unknown>>;

export type Action =
  | { calls: Call[] }
  /** `badArguments`: arguments of a tool call are no JSON object, have a lone surrogate, or nest too deeply; some servers refuse them. */
  | { malformed: string; badArguments: boolean };

/**
 * Parses the action of one answer. One bad tool call makes the whole answer malformed, and none of its calls runs. `apart`: whether the
 * content contains no thought that the chat template opened; if it may, the parser looks for one.
 */
export const parseAction = (message: Message, { action, toolset }: ActionConfig, apart = false): Action =>
  PARSERS[action](message, apart, toolset);

const PARSERS: Record<
  AgentConfig['action'],
  (message: Message, apart: boolean, toolset: readonly Toolset[]) => Action
> = {
  fenced: parseFenced,
  tool: (message, apart, toolset) => parseActions(message, toolsOf({ toolset }), apart),
  patch: parsePatch,
};

/** `toolset`: the toolset of the rollout; empty: bash and submit_solution. */
export type ActionConfig = Pick<AgentConfig, 'action'> & { toolset: readonly Toolset[] };

export const toolsOf = ({ toolset }: Pick<ActionConfig, 'toolset'>): readonly Tool[] =>
  toolset[0]?.tools ?? DEFAULT_TOOLS;

function parseFenced(message: Message, apart: boolean): Action {
  const block = findFencedBlock(contentWithoutThought(message, apart));
  return 'malformed' in block
    ? malformed(block.malformed)
    : { calls: [{ kind: 'bash', command: block.command, toolCallId: null }] };
}

/** Reads the patch between tags or fences named `patch` or `diff`, as SWE-bench does; the answer is the submission. */
function parsePatch(message: Message, apart: boolean): Action {
  const text = contentWithoutThought(message, apart);
  for (const [open, close] of PATCH_MARKS) {
    const from = text.indexOf(open);
    const to = from === -1 ? -1 : text.indexOf(close, from + open.length);
    if (to === -1) continue;
    const patch = text.slice(from + open.length, to).replace(/^\n+/, '');
    const submission = patch.endsWith('\n') ? patch : `${patch}\n`;
    return { calls: [{ kind: 'submit', submission, toolCallId: null }] };
  }
  return malformed('it contains no patch between <patch> and </patch>');
}

const PATCH_MARKS = [
  ['<patch>', '</patch>'],
  ['<diff>', '</diff>'],
  ['```diff\n', '\n```'],
  ['```patch\n', '\n```'],
] as const;

function parseActions(message: Message, tools: readonly Tool[], apart: boolean): Action {
  const toolCalls = message.tool_calls ?? [];
  if (toolCalls.length === 0) {
    const unread = findUnreadCall(message, apart);
    return malformed(unread ? `the call could not be read: ${unread.reason}` : 'it calls no tool');
  }
  const calls: Call[] = [];
  for (const { id, function: called } of toolCalls) {
    const values = readArguments(called.arguments);
    if (values === null) {
      const reason = `the arguments of ${shown(called.name)} are not a JSON object of well-formed text`;
      return { malformed: reason, badArguments: true };
    }
    const tool = tools.find(({ name }) => name === called.name);
    if (!tool) return malformed(`there is no tool ${shown(called.name)}; the tools are ${namesOf(tools)}`);
    const args = typedArguments(values, tool.parameters);
    if (tool.run === 'bash') {
      const { command } = args;
      if (typeof command !== 'string' || command.trim() === '')
        return malformed(`a call of ${tool.name} needs a "command" that is a text and not empty`);
      calls.push({ kind: 'bash', command, toolCallId: id });
    } else if (tool.run === 'submit') {
      const submission = typeof args.submission === 'string' ? args.submission : null;
      calls.push({ kind: 'submit', submission, toolCallId: id });
    } else {
      const wrong = wrongArgument(args, tool);
      if (wrong !== null) return malformed(`a call of ${tool.name} needs ${wrong}`);
      calls.push({ kind: 'tool', tool, args, raw: called.arguments, toolCallId: id });
    }
  }
  return { calls };
}

type Parameters = Tool['parameters'];

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  integer: Number.isInteger,
  number: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
};

const fits = (value: unknown, type: unknown): boolean =>
  typeof type !== 'string' || !Object.hasOwn(TYPES, type) || TYPES[type]?.(value) === true;

/** Some templates write all values as text: a text that is the JSON of the type that the schema wants becomes its value. */
function typedArguments(values: Arguments, { properties }: Parameters): Arguments {
  const typed = Object.entries(values).map(([key, value]) => {
    const type = Object.hasOwn(properties, key) ? properties[key]?.type : undefined;
    if (typeof value !== 'string' || fits(value, type)) return [key, value];
    const read = tryParseJson(value);
    return [key, fits(read, type) ? read : value];
  });
  return Object.fromEntries(typed);
}

/** Returns what is missing or has another type than the schema says; null: nothing. Null counts as absent. */
function wrongArgument(args: Arguments, { parameters: { properties, required } }: Tool): string | null {
  const missing = required.find((key) => (args[key] ?? null) === null);
  if (missing !== undefined) return `the argument "${missing}"`;
  for (const [key, { type }] of Object.entries(properties)) {
    const value = Object.hasOwn(args, key) ? args[key] : null;
    if ((value ?? null) !== null && !fits(value, type)) return `"${key}" to be of type ${String(type)}`;
  }
  return null;
}

/** Returns the names of tools for a sentence. */
export const namesOf = (tools: readonly Tool[]): string => {
  const names = tools.map(({ name }) => name);
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
};

function readArguments(text: string): Record<string, unknown> | null {
  if (text.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) && isWellFormed(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Maximum depth of arguments. The parsers of some servers fail on deeper ones. */
const MOST_DEPTH = 64;

/** Returns whether every string is well-formed UTF-16 and no value nests deeper than {@link MOST_DEPTH}. */
function isWellFormed(value: unknown, depth = MOST_DEPTH): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return (
    depth > 0 &&
    Object.entries(value).every(([key, inner]) => key.isWellFormed() && isWellFormed(inner, depth - 1))
  );
}

const shown = (name: string): string => JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}...` : name);
const malformed = (reason: string): Action => ({ malformed: reason, badArguments: false });

/** Returns the tool definitions for the endpoint; none when commands come in fenced blocks. */
export function toolDefinitions(config: ActionConfig & Pick<AgentConfig, 'patch_source'>): ToolDefinition[] {
  if (config.action !== 'tool') return [];
  const [own] = config.toolset;
  if (own) return own.tools.map(definitionOf);
  return DEFAULT_TOOLS.map((tool) => {
    const { type, properties, required } = tool.parameters;
    const isSubmission = tool.run === 'submit' && config.patch_source === 'submission';
    const parameters = isSubmission ? SUBMISSION : { properties, required };
    return definitionOf({ ...tool, parameters: { type, additionalProperties: false, ...parameters } });
  });
}

const definitionOf = ({
  name,
  description,
  parameters,
}: Pick<Tool, 'name' | 'description' | 'parameters'>): ToolDefinition => ({
  type: 'function',
  function: { name, description, parameters },
});

/** The tools of a run without a toolset. */
const DEFAULT_TOOLS: readonly Tool[] = [
  {
    name: 'bash',
    description: 'Run one command in a fresh bash subshell in the work directory.',
    parameters: {
      type: 'object',
      properties: { command: { type: 'string', description: 'The command to run.' } },
      required: ['command'],
    },
    run: 'bash',
  },
  {
    name: 'submit_solution',
    description: 'Hand in the work. Nothing can be done after it.',
    parameters: { type: 'object', properties: {}, required: [] },
    run: 'submit',
  },
];

const SUBMISSION = {
  properties: { submission: { type: 'string', description: 'The patch, as `git diff` prints it.' } },
  required: ['submission'],
};
