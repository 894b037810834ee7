/** Renders a model's chat template from the same values as servers do, with errors that name the remedy. */
import { Template } from '@huggingface/jinja';
import type { Message, ToolDefinition } from '@swefarm/shared';
import { errorMessage } from '@swefarm/shared';
import { AnswerError } from '../endpoint/errors.ts';

export type RenderChat = (
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  open: boolean,
) => string;

/**
 * @param variables values for the template beside the chat: its tokens and its own switches
 * @returns a function that throws AnswerError `template` when the template fails
 */
export function createChatTemplate(source: string, variables: Readonly<Record<string, unknown>>): RenderChat {
  let parsed: Template | null = null;
  return (messages, tools, open) => {
    const render = (asGiven: readonly object[]): string => {
      parsed ??= new Template(source);
      return parsed.render({
        messages: asGiven,
        add_generation_prompt: open,
        ...(tools.length > 0 ? { tools } : {}),
        ...variables,
      });
    };
    const [asObjects, hasCalls] = withObjects(messages);
    try {
      const written = render(asObjects);
      const joined = hasCalls ? mapsIn(written) : 0;
      const text = joined > 0 ? attempt(() => render(messages)) : null;
      // A `[object Map]` that a person or a tool wrote is in both renderings.
      return text !== null && mapsIn(text) < joined ? text : written;
    } catch (error) {
      // Some templates join the arguments to other text and need them as a string.
      const text = hasCalls ? attempt(() => render(messages)) : null;
      if (text !== null) return text;
      throw new AnswerError(
        'template',
        `the chat template cannot render this chat: ${errorMessage(error).slice(0, 200)}; ` +
          'leave --tokenizer out where the endpoint has /tokenize, or give a chat_template in --extra-body',
        { cause: error },
      );
    }
  };
}

/** Counts objects that were joined to other text, which the engine does without an error. */
const mapsIn = (written: string): number => written.split('[object Map]').length - 1;

function attempt(render: () => string): string | null {
  try {
    return render();
  } catch {
    return null;
  }
}

/** Parses arguments of calls to objects, which templates iterate over and servers pass; arguments that are not JSON stay text. */
function withObjects(messages: readonly Message[]): [messages: object[], hasCalls: boolean] {
  let hasCalls = false;
  const given = messages.map((message) => {
    if (!message.tool_calls) return message;
    hasCalls = true;
    const calls = message.tool_calls.map((call) => ({
      ...call,
      function: { ...call.function, arguments: objectOf(call.function.arguments) },
    }));
    return { ...message, tool_calls: calls };
  });
  return [given, hasCalls];
}

function objectOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : text;
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}
