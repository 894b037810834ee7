/**
 * Converts messages to prompt ids. The chat template renders the text; when the last answer comes back with its own ids
 * (echo), the prompt begins with exactly those ids and only the rest is rendered.
 */
import { openLru } from './lru.ts';
import type { ChatMessage, ChatTemplate } from './template.ts';
import { type Tokenizer, type Tokens, tokensOf } from './tokenizer.ts';

/** Consecutive runs of ids. */
export type Prompt = { readonly runs: readonly Tokens[]; readonly length: number };

export type Prompter = {
  fromMessages(messages: readonly ChatMessage[], tools: readonly unknown[]): Prompt;
  /** Renders the messages by the template, up to the head of the next answer. */
  text(messages: readonly ChatMessage[], tools: readonly unknown[], prompt?: boolean): string;
  /** The token that ends an answer. */
  readonly end: { id: number; text: string };
};

const END = '<|im_end|>';

export function openPrompter(tokenizer: Tokenizer, template: ChatTemplate): Prompter {
  const end = { id: tokenizer.idOf(END), text: END };
  const rendered = openLru<{ text: string }>(64_000_000, ({ text }) => text.length + 64);

  const once = (key: string, render: () => string): string => {
    const known = rendered.get(key);
    if (known) return known.text;
    const text = render();
    rendered.set(key, { text });
    return text;
  };
  const one = (message: ChatMessage) => once(keyOf(message), () => template.render([message], [], false));
  const head = (message: ChatMessage, tools: readonly unknown[]) =>
    tools.length === 0
      ? one(message)
      : once(`${JSON.stringify(tools)}${keyOf(message)}`, () => template.render([message], tools, false));
  const opening = template
    .render([{ role: 'user', content: '' }], [], true)
    .slice(one({ role: 'user', content: '' }).length);

  /** Each piece ends at a special token, so that encoding the pieces separately gives the ids of the whole. */
  const pieces = (messages: readonly ChatMessage[], tools: readonly unknown[]): string[] => {
    if (!template.appendOnly) return cut(template.render(messages.map(normal), tools, true), end.text);
    const [first, ...rest] = messages.map(normal);
    return first ? [head(first, tools), ...rest.map(one), opening] : [opening];
  };

  return {
    end,
    text: (messages, tools, prompt = true) => template.render(messages.map(normal), tools, prompt),
    fromMessages(messages, tools) {
      const echoed = messages.findLastIndex((message) => message.role === 'assistant');
      const ids = idsOf(messages[echoed]);
      if (!ids) return joined(pieces(messages, tools).map(tokenizer.encode));
      const prefix = tokensOf(ids.at(-1) === end.id ? ids.subarray(0, -1) : ids);
      if (template.appendOnly) {
        const tail = messages.slice(echoed + 1).map((message) => one(normal(message)));
        const close = one(normal({ role: 'assistant', content: '' }));
        return joined([
          prefix,
          ...[close.slice(close.lastIndexOf(end.text)), ...tail, opening].map(tokenizer.encode),
        ]);
      }
      // The template may rewrite the history, but the answer's end is always the nth end token of the text.
      const before = template.render(messages.slice(0, echoed + 1).map(normal), tools, false);
      const passed = before.split(end.text).length - 1;
      const after = cut(template.render(messages.map(normal), tools, true), end.text).slice(passed);
      return joined([prefix, tokenizer.encode(end.text), ...after.map(tokenizer.encode)]);
    },
  };
}

function joined(runs: Tokens[]): Prompt {
  return { runs, length: runs.reduce((sum, run) => sum + run.ids.length, 0) };
}

/** The ids that an echoing client returns with the last answer: prompt and generation. */
function idsOf(message: ChatMessage | undefined): Int32Array | null {
  const { prompt_token_ids: prompt, generation_token_ids: generation } = message ?? {};
  if (!prompt?.length || !generation?.length) return null;
  const ids = new Int32Array(prompt.length + generation.length);
  ids.set(prompt);
  ids.set(generation, prompt.length);
  return ids;
}

/** Selects the fields that templates read; newer servers name thinking `reasoning`. */
function normal(message: ChatMessage & { reasoning?: string | null }): ChatMessage {
  const thinking = message.reasoning_content ?? message.reasoning;
  return {
    role: message.role,
    content: message.content ?? '',
    ...(thinking && { reasoning_content: thinking }),
    ...(message.tool_calls?.length && { tool_calls: message.tool_calls }),
  };
}

const keyOf = (message: ChatMessage): string =>
  `${message.role}\0${message.content}\0${message.reasoning_content ?? ''}\0${
    message.tool_calls ? JSON.stringify(message.tool_calls) : ''
  }`;

/** Splits the text after each end token. */
function cut(text: string, at: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (let next = text.indexOf(at); next !== -1; next = text.indexOf(at, from)) {
    pieces.push(text.slice(from, next + at.length));
    from = next + at.length;
  }
  if (from < text.length) pieces.push(text.slice(from));
  return pieces;
}
