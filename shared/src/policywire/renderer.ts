/** Messages to token ids by the model's own chat template: the endpoint's /tokenize, or a tokenizer on this machine. */
import type { Message } from '../trajectory.ts';
import { WireFault } from './fault.ts';
import { readIds } from './ids.ts';
import type { Post } from './post.ts';

export type Renderer = {
  /** The chat with the head of the next answer. Throws what `post` throws, or WireFault. */
  render(messages: readonly Message[], tools: readonly object[], post: Post): Promise<Int32Array>;
};

/**
 * vLLM's /tokenize takes chat messages and gives the ids that its chat completions would use. `template` are the
 * request fields that change the rendering (`chat_template_kwargs`).
 */
export function serverRenderer(model: string, template: Readonly<Record<string, unknown>>): Renderer {
  return {
    async render(messages, tools, post) {
      const body = {
        model,
        messages,
        add_generation_prompt: true,
        ...template,
        ...(tools.length > 0 ? { tools } : {}),
      };
      const answer = (await post('tokenize', [JSON.stringify(body)])).toString('utf8');
      const ids = readIds(tokensIn(answer));
      if (ids?.length) return ids;
      throw new WireFault('garbage', `/tokenize answered no token ids: ${answer.slice(0, 100)}`);
    },
  };
}

function tokensIn(answer: string): unknown {
  try {
    return (JSON.parse(answer) as { tokens?: unknown } | null)?.tokens;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
