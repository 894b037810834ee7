/** Renders a model's chat template as servers do: from the same values, and with errors that say what to do. */
import { Template } from '@huggingface/jinja';
import { errorMessage } from '../../failures/errors.ts';
import type { Message, ToolDefinition } from '../../records/trajectory.ts';
import { AnswerError } from '../endpoint/errors.ts';

export type RenderChat = (
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  open: boolean,
) => string;

/**
 * @param variables what the template finds beside the chat: its tokens and its own switches
 * @returns a function that throws AnswerError `template` for whatever the template cannot do
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
      // What a person or a tool wrote stands in both.
      return text !== null && mapsIn(text) < joined ? text : written;
    } catch (error) {
      // Some templates join the arguments to other text, and want them as text.
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

/** How often a table was joined to other text, which the engine does without complaint. */
const mapsIn = (written: string): number => written.split('[object Map]').length - 1;

function attempt(render: () => string): string | null {
  try {
    return render();
  } catch {
    return null;
  }
}

/** Arguments of calls as objects, as templates walk them and servers give them; what is no JSON stays text. */
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
