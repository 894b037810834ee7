/** Renders with a local tokenizer folder, for endpoints without /tokenize. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Template } from '@huggingface/jinja';
import { Tokenizer } from '@huggingface/tokenizers';
import type { Message, ToolDefinition } from '@swefarm/shared';
import { errorMessage, tryParseJson, UsageError } from '@swefarm/shared';
import { AnswerError } from '../endpoint/errors.ts';
import type { Renderer } from './renderer.ts';

const known = new Map<string, Promise<Renderer>>();

/**
 * Reads tokenizer.json, tokenizer_config.json (optional) and the chat template, unless `template` has one. Each process reads a folder once
 * for each `template`. Throws UsageError `tokenizer` if a file is missing or invalid.
 */
export function folderRenderer(
  folder: string,
  template: Readonly<Record<string, unknown>>,
): Promise<Renderer> {
  const key = `${folder}\0${JSON.stringify(template)}`;
  const opened = known.get(key) ?? open(folder, template);
  known.set(key, opened);
  opened.catch(() => known.delete(key));
  return opened;
}

async function open(folder: string, template: Readonly<Record<string, unknown>>): Promise<Renderer> {
  try {
    const config = JSON.parse((await optional(join(folder, 'tokenizer_config.json'))) ?? '{}');
    const tokenizer = new Tokenizer(
      JSON.parse(await readFile(join(folder, 'tokenizer.json'), 'utf8')),
      config,
    );
    const own = template.chat_template;
    const source =
      typeof own === 'string'
        ? own
        : ((await optional(join(folder, 'chat_template.jinja'))) ?? templateIn(config));
    if (source === null) throw new Error('there is neither chat_template.jinja nor a chat_template');
    const write = createChatTemplate(source, {
      bos_token: tokenText(config.bos_token),
      eos_token: tokenText(config.eos_token),
      ...(template.chat_template_kwargs as Record<string, unknown> | undefined),
    });
    return {
      async render(messages, tools, _post, how = { open: true }) {
        const text = write(messages, tools, how.open);
        return Int32Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids);
      },
      decode: async (ids) =>
        tokenizer.decode(Array.from(ids), {
          skip_special_tokens: false,
          clean_up_tokenization_spaces: false,
        }),
    };
  } catch (error) {
    throw new UsageError(`tokenizer folder ${folder}: ${errorMessage(error)}`, {
      cause: error,
      code: 'tokenizer',
    });
  }
}

async function optional(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Returns the template: a text, or the entry `default` (else the first entry) of a list of named templates; null: none. */
function templateIn({ chat_template: given }: { chat_template?: unknown }): string | null {
  if (typeof given === 'string') return given;
  if (!Array.isArray(given)) return null;
  const named = given as { name?: unknown; template?: unknown }[];
  const chosen = named.find(({ name }) => name === 'default') ?? named[0];
  return typeof chosen?.template === 'string' ? chosen.template : null;
}

const tokenText = (token: unknown): string => {
  const text = typeof token === 'object' && token !== null ? (token as { content?: unknown }).content : token;
  return typeof text === 'string' ? text : '';
};

/**
 * Renders a model's chat template with the values that servers pass.
 *
 * @param variables additional values for the template, such as special tokens
 * @returns a function that throws AnswerError `template` if the template fails
 */
export function createChatTemplate(source: string, variables: Readonly<Record<string, unknown>>) {
  let parsed: Template | null = null;
  return (messages: readonly Message[], tools: readonly ToolDefinition[], open: boolean): string => {
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
