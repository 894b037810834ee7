/** Parses an answer of the model into the commands to run: one fenced block, or tool calls. */
import { contentWithoutThought, findFencedBlock, findUnreadCall } from '@swefarm/policy';
import type { Message, ToolDefinition } from '@swefarm/shared';

export type Call =
  | { kind: 'bash'; command: string; toolCallId: string | null }
  | { kind: 'submit'; submission: string | null; toolCallId: string | null };

export type Action =
  | { calls: Call[] }
  /** `badArguments`: arguments of a tool call are no JSON object, have a lone surrogate, or nest too deeply; some servers refuse them. */
  | { malformed: string; badArguments: boolean };

/**
 * Parses the action of one answer. One bad tool call makes the whole answer malformed, and none of its calls runs. `apart`: whether the
 * content contains no thought that the chat template opened; if it may, the parser looks for one.
 */
export const parseAction = (message: Message, action: 'fenced' | 'tool', apart = false): Action =>
  action === 'tool' ? parseActions(message, apart) : parseFenced(message, apart);

function parseFenced(message: Message, apart: boolean): Action {
  const block = findFencedBlock(contentWithoutThought(message, apart));
  return 'malformed' in block
    ? malformed(block.malformed)
    : { calls: [{ kind: 'bash', command: block.command, toolCallId: null }] };
}

function parseActions(message: Message, apart: boolean): Action {
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
    if (called.name === 'bash') {
      const command = values.command;
      if (typeof command !== 'string' || command.trim() === '') {
        return malformed('a call of bash needs a "command" that is a text and not empty');
      }
      calls.push({ kind: 'bash', command, toolCallId: id });
    } else if (called.name === 'submit_solution') {
      const submission = typeof values.submission === 'string' ? values.submission : null;
      calls.push({ kind: 'submit', submission, toolCallId: id });
    } else {
      return malformed(`there is no tool ${shown(called.name)}; the tools are bash and submit_solution`);
    }
  }
  return { calls };
}

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
export function toolDefinitions(
  action: 'fenced' | 'tool',
  patchSource: 'tree' | 'submission',
): ToolDefinition[] {
  if (action === 'fenced') return [];
  const submission = { type: 'string', description: 'The patch, as `git diff` prints it.' };
  const asSubmission = patchSource === 'submission';
  return [
    tool('bash', 'Run one command in a fresh bash subshell in the work directory.', {
      properties: { command: { type: 'string', description: 'The command to run.' } },
      required: ['command'],
    }),
    tool('submit_solution', 'Hand in the work. Nothing can be done after it.', {
      properties: asSubmission ? { submission } : {},
      required: asSubmission ? ['submission'] : [],
    }),
  ];
}

function tool(name: string, description: string, parameters: Record<string, unknown>): ToolDefinition {
  return {
    type: 'function',
    function: {
      name,
      description,
      parameters: { type: 'object', additionalProperties: false, ...parameters },
    },
  };
}
