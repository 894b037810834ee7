/** Turns messages into token ids by the model's own chat template: through the endpoint's /tokenize, or a local tokenizer. */

import type { Message, PolicyConfig, ToolDefinition } from '@swefarm/shared';
import { tryParseJson } from '@swefarm/shared';
import { AnswerError } from '../endpoint/errors.ts';
import type { Post } from '../endpoint/post.ts';
import { parseIds } from '../tokens/ids.ts';

export type Renderer = {
  /**
   * Renders the chat with the head of the next answer, or without it (`open: false`).
   * Throws errors of `post`, or AnswerError: `template` if the local template cannot render the chat, `garbage` for no token ids.
   */
  render(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    post: Post,
    how?: { open: boolean },
  ): Promise<Int32Array>;
  /** Returns the text of token ids. Throws errors of `post`, or AnswerError. */
  decode(ids: Int32Array, post: Post): Promise<string>;
};

/**
 * Opens a renderer for the tokenizer folder, or for the endpoint without a folder. `model`: see TurnLimits. Throws UsageError `tokenizer` for
 * a bad folder.
 */
export async function openRenderer(
  { model: own, tokenizer, extra_body }: PolicyConfig,
  model: () => string = () => own,
): Promise<Renderer> {
  const { chat_template_kwargs: kwargs, chat_template: chat } = extra_body;
  const template = {
    ...(kwargs === undefined ? {} : { chat_template_kwargs: kwargs }),
    ...(chat === undefined ? {} : { chat_template: chat }),
  };
  if (tokenizer === null) return serverRenderer(model, template);
  const { folderRenderer } = await import('./tokenizer.ts');
  return await folderRenderer(tokenizer, template);
}

/**
 * Renders with vLLM's /tokenize, which returns the same ids as chat completions use, and decodes with /detokenize. `template`: request
 * fields that change the rendering.
 */
function serverRenderer(modelName: () => string, template: Readonly<Record<string, unknown>>): Renderer {
  return {
    async render(messages, tools, post, how = { open: true }) {
      const body = {
        model: modelName(),
        messages,
        add_generation_prompt: how.open,
        ...template,
        ...(tools.length > 0 ? { tools } : {}),
      };
      const answer = (await post('tokenize', [JSON.stringify(body)])).toString('utf8');
      const ids = parseIds(fieldOf(answer, 'tokens'));
      if (ids?.length) return ids;
      throw new AnswerError('garbage', `/tokenize answered no token ids: ${answer.slice(0, 100)}`);
    },
    async decode(ids, post) {
      const body = JSON.stringify({ model: modelName(), tokens: Array.from(ids) });
      const answer = (await post('detokenize', [body])).toString('utf8');
      const text = fieldOf(answer, 'prompt');
      if (typeof text === 'string') return text;
      throw new AnswerError('garbage', `/detokenize answered no text: ${answer.slice(0, 100)}`);
    },
  };
}

const fieldOf = (answer: string, field: string): unknown =>
  (tryParseJson(answer) as Record<string, unknown> | null | undefined)?.[field];
