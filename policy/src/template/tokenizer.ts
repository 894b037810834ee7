/** Renders with a local tokenizer folder, for endpoints without /tokenize. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { errorMessage, UsageError } from '@swefarm/shared';
import { createChatTemplate } from './chattemplate.ts';
import type { Renderer } from './renderer.ts';

const known = new Map<string, Promise<Renderer>>();

/**
 * Reads tokenizer.json, tokenizer_config.json and the chat template (chat_template.jinja, or in the configuration). Each process reads a
 * folder once. Throws UsageError `tokenizer` if a file is missing or invalid.
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

/** Returns the template: a text, or the entry `default` of a list of named templates. */
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
