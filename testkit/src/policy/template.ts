/** Chat templates, which render a list of messages to the text for the model: two of our own, or the jinja file of any model. */
import { existsSync, readFileSync } from 'node:fs';
import { Template } from '@huggingface/jinja';
import { errorMessage, UsageError } from '@swefarm/shared';

/** A message of a request; unknown fields are preserved. */
export type ChatMessage = {
  role: string;
  content?: string | null;
  reasoning_content?: string | null;
  tool_calls?: { function: { name: string; arguments: string } }[];
  prompt_token_ids?: number[];
  generation_token_ids?: number[];
};

export type ChatTemplate = {
  readonly name: string;
  /** True when a message renders to the same text at every position, so that messages can be rendered one by one. */
  readonly appendOnly: boolean;
  render(messages: readonly ChatMessage[], tools: readonly unknown[], prompt: boolean): string;
};

const OURS = { plain: { appendOnly: true }, 'strips-thinking': { appendOnly: false } } as const;

/** `plain`, `strips-thinking`, or the path of a jinja file. Throws UsageError `chat_template`. */
export function loadTemplate(name: string): ChatTemplate {
  const ours = name in OURS ? OURS[name as keyof typeof OURS] : null;
  const path = ours ? new URL(`../../fixtures/tokenizer/${name}.jinja`, import.meta.url) : name;
  if (!ours && !existsSync(path)) {
    const names = Object.keys(OURS).join(', ');
    throw new UsageError(`no chat template ${name}: expected ${names} or a jinja file`, {
      code: 'chat_template',
    });
  }
  try {
    const template = new Template(readFileSync(path, 'utf8'));
    return {
      name,
      appendOnly: ours?.appendOnly ?? false,
      render: (messages, tools, prompt) =>
        template.render({ messages, add_generation_prompt: prompt, ...(tools.length > 0 && { tools }) }),
    };
  } catch (error) {
    throw new UsageError(`chat template ${name}: ${errorMessage(error)}`, {
      cause: error,
      code: 'chat_template',
    });
  }
}
