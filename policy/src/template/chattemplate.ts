/** Renders a model's chat template with the values that servers pass. */
import { Template } from '@huggingface/jinja';
import type { Message, ToolDefinition } from '@swefarm/shared';
import { errorMessage, tryParseJson } from '@swefarm/shared';
import { AnswerError } from '../endpoint/errors.ts';

export type RenderChat = (
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  open: boolean,
) => string;

/**
 * @param variables additional values for the template, such as special tokens
 * @returns a function that throws AnswerError `template` if the template fails
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
      // An `[object Map]` in the text of a message is in both renderings, so the counts are compared.
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

/** Counts `[object Map]`, which the template engine writes for an object that is joined to text. */
const mapsIn = (written: string): number => written.split('[object Map]').length - 1;

function attempt(render: () => string): string | null {
  try {
    return render();
  } catch {
    return null;
  }
}

/** Parses the arguments of calls into objects, as servers do, because templates iterate over objects. Other arguments stay text. */
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
  const value = tryParseJson(text);
  return typeof value === 'object' && value !== null ? value : text;
}
