/** A scripted completions server that returns a given text with its token ids and logs the prompts. The test provides the renderer. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { loadTokenizer, type Tokenizer } from '@swefarm/testkit';
import { createEndpointClient } from '../../src/endpoint/client.ts';
import type { Post } from '../../src/endpoint/post.ts';

/** Renders a chat; `tools` is empty if none are offered. */
export type Render = (chat: {
  messages: readonly object[];
  tools: readonly object[];
  open: boolean;
}) => string | Promise<string>;

/** The next sampled text, and the token that ends it unless a limit cut it. */
export type Sample = { text: string; end: string | null };

const FIXTURES = new URL('../../../testkit/fixtures/tokenizer/', import.meta.url);

/** Creates a folder with the chat template and a tokenizer that has these special tokens; dispose the result to remove the folder. */
export async function familyFolder(
  tokens: readonly string[],
  template: string,
): Promise<AsyncDisposable & { folder: string; tokenizer: Tokenizer }> {
  const folder = await mkdtemp(join(tmpdir(), 'family-'));
  const json = JSON.parse(readFileSync(new URL('tokenizer.json', FIXTURES), 'utf8'));
  const known = new Set(json.added_tokens.map(({ content }: { content: string }) => content));
  for (const content of [...tokens, '<s>', '</s>']) {
    if (known.has(content)) continue;
    known.add(content);
    const id = 5000 + json.added_tokens.length;
    const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
    json.added_tokens.push({ id, content, ...flags });
  }
  const path = join(folder, 'tokenizer.json');
  await writeFile(path, JSON.stringify(json));
  await writeFile(join(folder, 'tokenizer_config.json'), '{"bos_token":"<s>","eos_token":"</s>"}');
  await writeFile(join(folder, 'chat_template.jinja'), template);
  return {
    folder,
    tokenizer: loadTokenizer(path),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

export type SamplingServer = AsyncDisposable & {
  post: Post;
  /** Prompts in the order of the requests. */
  log: number[][];
  answerWith(sample: Sample): void;
};

export async function startSamplingServer(tokenizer: Tokenizer, render: Render): Promise<SamplingServer> {
  const log: number[][] = [];
  let next: Sample | null = null;
  const answer = async (path: string, body: Record<string, unknown>): Promise<object> => {
    if (path === '/detokenize') return { prompt: tokenizer.decode(body.tokens as number[]) };
    if (path === '/tokenize') {
      const { messages, tools = [], add_generation_prompt: open } = body;
      const chat = { messages: messages as object[], tools: tools as object[], open: open as boolean };
      return { tokens: Array.from(tokenizer.encode(await render(chat)).ids) };
    }
    if (next === null) throw new Error('nothing to say');
    const { text: sampled, end } = next;
    const ids = [...tokenizer.encode(sampled).ids, ...(end === null ? [] : [tokenizer.idOf(end)])];
    const prompt = body.prompt as number[];
    log.push(prompt);
    const logprobs = { token_logprobs: ids.map(() => -0.5) };
    const choice = {
      text: sampled,
      finish_reason: end === null ? 'length' : 'stop',
      token_ids: ids,
      logprobs,
    };
    const usage = { prompt_tokens: prompt.length, completion_tokens: ids.length };
    return { choices: [choice], usage };
  };
  const server = createServer((request, response) => {
    text(request)
      .then((body) => answer((request.url ?? '').replace('/v1', ''), JSON.parse(body)))
      .then(
        (reply) => response.end(JSON.stringify(reply)),
        (error: Error) => response.writeHead(400).end(error.message),
      );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const client = createEndpointClient(url, null);
  return {
    log,
    answerWith: (sample) => {
      next = sample;
    },
    async post(route, pieces) {
      return await client.postWhole(route, pieces, new AbortController().signal);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type ChatMessage = { content: string | null; tool_calls?: { function: { arguments: string } }[] };

/** Returns the messages as servers pass them to templates: content is never null, and arguments are objects. */
export const withObjects = (messages: readonly object[]): object[] =>
  (messages as ChatMessage[]).map(({ tool_calls: calls, ...message }) => ({
    ...{ ...message, content: message.content ?? '' },
    ...(calls && {
      tool_calls: calls.map((call) => ({
        ...call,
        function: { ...call.function, arguments: JSON.parse(call.function.arguments) },
      })),
    }),
  }));
